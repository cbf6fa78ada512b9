// SPDX-License-Identifier: Apache-2.0
/** Events of the node itself: it was away for a while, has other addresses, or another program's firewall.
 * Layer: agent. */
import { uptime } from 'node:os'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { tryParseAddr } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { nodeAddress } from '#lib/model/node.ts'
import type { ObjectChange } from '#lib/model/snapshot.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Config } from '../config/config.ts'
import type { NodeMove } from '../dataplane/conntrack/node-moves.ts'
import type { Features } from '../dataplane/programs/kernel-features.ts'
import { TABLES } from '../dataplane/generation-tables.ts'
import { FirewallWatch } from './firewall-watch.ts'
import type { Interfaces } from '../interfaces/table.ts'
import { podDevices } from '../node/firewall/pod-devices.ts'
import { SuspendDetector, type Absence } from './suspend-detector.ts'
import type { AgentSource } from '../run/sources.ts'
import type { Task } from '#lib/base/async/task-group.ts'
import type { DataplaneSetup } from '../run/dataplane-setup.ts'

export interface NodeEventsOptions {
  readonly source: Pick<AgentSource, 'refresh' | 'localAddress'>
  readonly running: Pick<DataplaneSetup, 'monitor' | 'dataplane' | 'loop'>
  readonly log: Log
  readonly health: Health
  readonly features: Pick<Features, 'redirect_neigh'>
  readonly config: () => Config
  /** iptables and nft; undefined: this machine's */
  readonly run?: RunTool | undefined
}

export interface NodeEvents {
  readonly tasks: readonly Task[]
  /** what other programs' firewalls drop, a line each */
  readonly firewalls: () => readonly string[]
}

export function watchNodeEvents(options: NodeEventsOptions): NodeEvents {
  const { running, log, health, features, config, run } = options
  const firewall = new FirewallWatch({
    ...{ clock: systemClock, log, health, run },
    pods: () =>
      podDevices(running.dataplane.workloads, { devices: running.monitor.interfaces.all(), prefix: config().compile.interfacePrefix }),
    serves: () => running.dataplane.isReady,
    forwards: features.redirect_neigh !== 'yes',
  })
  return { tasks: [watchSleep(options), (signal) => firewall.run(signal)], firewalls: () => firewall.findings }
}

/** After an absence everything is read again: the source, the kernel's interfaces and routes, every table and hook. */
function watchSleep({ source, running, log }: NodeEventsOptions): Task {
  const watch = new SuspendDetector({
    clock: systemClock,
    uptimeMs: () => uptime() * 1000,
    cpuMs: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    },
    onAwake: (absence) => {
      log.warn({ ...absence }, 'agent.resumed')
      void source.refresh(`the agent was away: ${absenceText(absence)}`)
      lookAtKernel(running, log)
    },
  })
  return (signal) => watch.run(signal)
}

function lookAtKernel({ monitor, dataplane, loop }: NodeEventsOptions['running'], log: Log): void {
  try {
    monitor.resync()
  } catch (thrown) {
    // events still come, and the next part that needs netlink reports what is wrong with it
    log.error({ error: thrown, reason: errorText(thrown) }, 'interfaces.list-failed')
  }
  dataplane.checkHooks()
  dataplane.checkRoutes()
  for (const name of TABLES) dataplane.checkTable(name)
  loop.mark()
}

function absenceText({ stoppedMs, suspendedMs }: Absence): string {
  const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`
  return suspendedMs > 0 ? `suspended for ${seconds(suspendedMs)}` : `stopped for ${seconds(stoppedMs)}`
}

/** A connection whose own address has gone gets no answer any more: that would be noticed only half a minute later. */
export function leaveLostAddress({ source, log }: Pick<NodeEventsOptions, 'source' | 'log'>, interfaces: Interfaces): void {
  const { localAddress } = source
  const addr = localAddress === undefined ? undefined : tryParseAddr(localAddress)
  // all of 127.0.0.0/8 is here, by one address
  if (localAddress === undefined || addr === undefined || localAddress.startsWith('127.')) return
  if (interfaces.all().some(({ addresses }) => addresses.some((one) => one.addr === addr))) return
  log.warn({ address: localAddress }, 'source.address-removed')
  void source.refresh(`this node no longer has the address ${localAddress}`)
}

/** Other nodes whose addresses are others now. */
export function nodeMoves(changes: readonly ObjectChange[], self: string): NodeMove[] {
  return changes.flatMap((change) => {
    if (change.kind !== 'Node' || change.before === undefined || change.after === undefined || change.after.name === self) return []
    const { before, after } = change
    return [true, false].flatMap((v4): NodeMove[] => {
      const [from, to] = [nodeAddress(before, v4), nodeAddress(after, v4)]
      return from === undefined || to === undefined || from === to ? [] : [[from, to]]
    })
  })
}
