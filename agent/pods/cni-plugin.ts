// SPDX-License-Identifier: Apache-2.0
/** The CNI plugin of this node, with what it takes addresses from and asks the kernel by. Layer: agent. */
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Notifier } from '#lib/base/async/wait.ts'
import { isAnnounced } from '#lib/model/node.ts'
import { INTERFACE_PREFIX } from '#lib/model/pod.ts'
import type { AttachmentFiles } from '../cni/attachments.ts'
import { ChainedNetworking } from '../cni/networking/chained-networking.ts'
import { KernelVeths, linkIndexOf } from '../cni/networking/kernel-veths.ts'
import { podMtu } from '../cni/networking/mtu.ts'
import { OwnNetworking } from '../cni/networking/own-networking.ts'
import { nodeEndOf } from '../cni/networking/veth-lookup.ts'
import { Plugin } from '../cni/plugin.ts'
import { NO_ADDRESSES, PodAddresses } from '../cni/pod-addresses.ts'
import type { PodNode } from '../cni/pod-node.ts'
import { hasOverlay, poolsIn } from '../compile/pools.ts'
import type { NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import { ApiBlocks } from '../ipam/api-blocks.ts'
import type { BlockStore } from '../ipam/block-store.ts'
import { FileBlocks } from '../ipam/file-blocks.ts'
import { Ipam } from '../ipam/ipam.ts'
import { keepsPodsAway } from '../report/own-node.ts'
import { agentRole } from '../run/options.ts'
import { cniFolder } from '../run/state-files.ts'
import type { PodsOptions } from './pods.ts'

export interface CniPluginOptions extends PodsOptions {
  readonly attachments: AttachmentFiles
  readonly netlink: NetlinkExchange
  /** where other plugins are */
  readonly binDir: () => string
  /** undefined: another plugin gives pods their addresses */
  readonly ipam: Ipam | undefined
  /** a pass is over, or {@link isNodeAnnounced} is otherwise than it was */
  readonly changed: Notifier
  /** aborts when the agent stops, with the answer for calls that wait */
  readonly stop: AbortSignal
}

/** Others may have connections to an address for so long after its pod is gone. */
const REST_MS = 60_000

export function cniPlugin(of: CniPluginOptions): Plugin {
  const { options, attachments, attached: pods, netlink, interfaces, config, ipam, log, stop } = of
  const addresses = ipam === undefined ? NO_ADDRESSES : podAddresses(of, ipam)
  const own = new OwnNetworking({
    addresses,
    veths: new KernelVeths({ netlink, interfaces }),
    interfacePrefix: () => config()?.compile.interfacePrefix ?? INTERFACE_PREFIX,
    mtu: (addrs) => usualMtu(of, addrs),
    clock: systemClock,
    log,
  })
  const chained = new ChainedNetworking({ nodeEndOf: (pod) => nodeEndOf(netlink, pod) })
  const plugin = { name: options.node, node: podNode(of), attachments, pods, own, chained, addresses, clock: systemClock, log, stop }
  return new Plugin(plugin)
}

/** Other nodes know where pods of this one are. Condition network.announced says why not. */
export function isNodeAnnounced({ datastore, cni, store, options }: PodsOptions): boolean {
  return datastore === undefined || !agentRole({ cni }).servesPods || isAnnounced(store.snapshot, options.node)
}

function podNode(of: CniPluginOptions): PodNode {
  const { store, netlink, changed, dataplane, health } = of
  return {
    get synced() {
      return store.synced
    },
    get announced() {
      return isNodeAnnounced(of)
    },
    get locked() {
      return of.datastore?.whyLocked()
    },
    changed,
    indexOf: (iface) => linkIndexOf(netlink, iface),
    missingOf: (pod) => dataplane.missingOf(pod),
    notReady: () => {
      const failing = keepsPodsAway(health)
      return failing.length === 0 ? undefined : failing.map(({ name, reason }) => `${name}: ${reason}`).join('; ')
    },
  }
}

function podAddresses(of: CniPluginOptions, ipam: Ipam): PodAddresses {
  const { options, cni, datastore, store, log } = of
  return new PodAddresses({
    log,
    ipam,
    node: options.node,
    isAlone: datastore === undefined,
    folders: () => [of.binDir()],
    snapshot: () => store.snapshot,
    hasPools: !cni.local,
    held: of.held,
  })
}

/** The one of this node. */
export function podIpam({ options, datastore, log }: Pick<PodsOptions, 'options' | 'datastore' | 'log'>): Ipam {
  const { node, stateDir } = options
  const files = (folder: string): BlockStore =>
    new FileBlocks({
      folder: join(cniFolder(stateDir), folder),
      node,
      announce: (ranges) => {
        if (ranges.length > 0) log.warn({ blocks: ranges.length }, 'ipam.announce-skipped')
      },
    })
  const unreadable = (error: unknown): void => {
    log.warn({ error }, 'ipam.block-rejected')
  }
  const shared = datastore === undefined ? files('blocks') : new ApiBlocks({ api: datastore.api, node, unreadable })
  return new Ipam({ node, shared, local: files('ranges'), now: () => systemClock.wall(), restMs: REST_MS })
}

/** Of the devices with the node's own addresses; where these have none, or where the ways to other nodes' pods are
 * another program's, of all that lead out. */
export function usualMtu({ dataplane, store, cni, options }: PodsOptions, addresses: readonly Addr[]): number {
  const devices = dataplane.devices.list().filter(({ use }) => use === 'host')
  const vital = devices.filter((one) => one.vital)
  const mtus = (vital.length > 0 && !cni.local ? vital : devices).map(({ iface }) => iface.mtu)
  const pools = poolsIn({ snapshot: store.snapshot, node: options.node, servesPods: agentRole({ cni }).servesPods })
  return podMtu({ mtus, overlay: !cni.local && hasOverlay(pools) }, addresses)
}
