// SPDX-License-Identifier: Apache-2.0
/** The kernel of its node as the agent uses it; tests have one in memory. Layer: agent. */
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import { NetlinkSocket, raiseMemlock } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import type { Log } from '#lib/obs/log.ts'
import { isOldKernel } from '#lib/base/os/oldest-kernel.ts'
import { kernelHooks, type AllHooks } from '../dataplane/attach/kernel-hooks.ts'
import type { Generations } from '../dataplane/loader.ts'
import { PinnedGenerations } from '../dataplane/pinned-generations.ts'
import type { Pins } from '../dataplane/pins.ts'
import { probeFeatures, type Features } from '../dataplane/programs/kernel-features.ts'
import { trialRefusal } from '../dataplane/programs/trial.ts'
import { MONITOR_BUFFER_BYTES, MONITOR_GROUPS } from '../interfaces/monitor.ts'
import { NETLINK_NETFILTER } from '../interfaces/netlink/connection.ts'
import { NETLINK_ROUTE, type NetlinkTransport } from '../interfaces/netlink/exchange.ts'
import type { Interfaces } from '../interfaces/table.ts'
import { countsMemlock, packageObjects, tooOld, unsafeKernel } from '../node/facts.ts'
import { kernelWire } from '../watch/tunnel/kernel-wire.ts'
import type { TunnelWire } from '../watch/tunnel/probe.ts'
import type { AgentOptions } from './options.ts'

const TRACKED = '/proc/sys/net/netfilter/nf_conntrack_count'

export interface NodeKernel {
  /** What it can do; from now on it may be asked to load programs. */
  features(log: Log): Features
  /** Why programs cannot run here; undefined: as far as can be told before they are attached, they can. */
  whyUnsupported(features: Features): Promise<string | undefined>
  /** for requests about links, addresses and routes */
  openNetlink(): NetlinkTransport
  /** the same, which hears of their changes */
  openMonitor(): NetlinkTransport
  /** for one list of the connections that the kernel tracks; undefined: it tracks none */
  openConnections(): NetlinkTransport | undefined
  generations(of: { readonly pins: Pins; readonly features: Features; readonly interfaces: Interfaces }): Generations
  hooks(of: { readonly pins: Pins; readonly interfaces: Interfaces }): AllHooks
  /** for packets that ask whether the tunnel's arrive */
  readonly tunnelWire: TunnelWire
  /** undefined: /proc/sys */
  readonly sysctls?: string
  /** iptables and nft; undefined: this machine's */
  readonly run?: RunTool
}

/** The one that this process runs on. */
export function ownKernel({ objects = packageObjects() }: Pick<AgentOptions, 'objects'>): NodeKernel {
  return {
    features: (log) => {
      liftMemlock(log)
      return probeFeatures()
    },
    whyUnsupported: async (features) => {
      const unsafe = unsafeKernel()
      // vendors backport: whether an old one will do is found by trying, before anything is touched
      if (unsafe !== undefined || !isOldKernel(release())) return unsafe
      const refusal = await trialRefusal(objects, features)
      return refusal === undefined ? undefined : tooOld(refusal)
    },
    openNetlink: () => NetlinkSocket.open({ protocol: NETLINK_ROUTE }),
    openMonitor: () => NetlinkSocket.open({ protocol: NETLINK_ROUTE, groups: MONITOR_GROUPS, receiveBufferBytes: MONITOR_BUFFER_BYTES }),
    // without this file the list would load the kernel's modules
    openConnections: () => (existsSync(TRACKED) ? NetlinkSocket.open({ protocol: NETLINK_NETFILTER }) : undefined),
    generations: (of) => new PinnedGenerations({ ...of, objects, clock: systemClock }),
    hooks: ({ pins, interfaces }) => kernelHooks(pins.links, interfaces),
    tunnelWire: kernelWire,
  }
}

/** Kernels before 5.11 count maps against this limit; on later ones not being allowed to lift it does not matter. */
function liftMemlock(log: Log): void {
  try {
    raiseMemlock()
  } catch (thrown) {
    if (countsMemlock()) log.warn({ error: thrown, needs: 'CAP_SYS_RESOURCE, or no limit of locked memory' }, 'memlock.raise-failed')
  }
}
