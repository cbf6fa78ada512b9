// SPDX-License-Identifier: Apache-2.0
/** The data plane and what else works on the node's maps and devices. Layer: agent. */
import { monotonicNs, type BpfMap } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import { cidrContains } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { isKubeProxy } from '#lib/model/pod.ts'
import type { Log } from '#lib/obs/log.ts'
import { ConntrackGc } from '../dataplane/conntrack/gc.ts'
import { NodeMoves } from '../dataplane/conntrack/node-moves.ts'
import { OlderConnections, type OlderTable } from '../dataplane/conntrack/older.ts'
import { Dataplane } from '../dataplane/dataplane.ts'
import { findKubeProxy, proxyRulesText } from '../dataplane/kube-proxy/cleanup.ts'
import type { GenerationTables } from '../dataplane/generation-tables.ts'
import { ProxyHandover } from '../dataplane/kube-proxy/handover.ts'
import { KeptFlows } from '../dataplane/kube-proxy/kept-flows.ts'
import { findOldRules, Leftovers } from '../dataplane/leftovers/leftovers.ts'
import { MapUsage } from '../dataplane/maps/map-usage.ts'
import type { Features } from '../dataplane/programs/kernel-features.ts'
import type { ApplyLoop } from '../dataplane/reconcile/loop.ts'
import { InterfaceMonitor, type MonitorEvents } from '../interfaces/monitor.ts'
import { NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import type { MapName } from '../maps/catalogue.ts'
import { askedAddresses } from '../proof/asks.ts'
import { leaveLostAddress } from '../watch/node-events.ts'
import type { ClusterSide } from './cluster-side.ts'
import type { NodeKernel } from './node-kernel.ts'
import type { AgentOptions } from './options.ts'
import { sysctlFile } from './state-files.ts'

export interface DataplaneSetupOptions {
  readonly options: Pick<AgentOptions, 'stateDir' | 'node'>
  readonly cluster: ClusterSide
  readonly kernel: NodeKernel
  readonly features: Features
  readonly log: Log
}

export interface DataplaneSetup extends Disposable {
  readonly dataplane: Dataplane
  readonly loop: ApplyLoop
  readonly sweep: ConntrackGc
  readonly fill: MapUsage
  readonly moves: NodeMoves
  readonly older: OlderConnections
  readonly handOver: ProxyHandover
  readonly kept: KeptFlows
  readonly leftovers: Leftovers
  readonly monitor: InterfaceMonitor
}

/** Nothing runs yet but the interface table, which is complete. Throws the addon's errors. */
export function setUpDataplane(of: DataplaneSetupOptions): DataplaneSetup {
  const { options, cluster, kernel, log } = of
  const { health, loop, reports, store } = cluster
  const clock = systemClock
  using stack = new DisposableStack()
  const monitor = stack.use(new InterfaceMonitor({ socket: kernel.openMonitor(), log }))
  const netlink = new NetlinkExchange(stack.adopt(kernel.openNetlink(), (socket) => socket.close()))
  const serves = (): boolean => dataplane.isReady && dataplane.isWritten
  const older = new OlderConnections({
    ...{ clock, log, serves, monotonicMs: () => monotonicNs() / 1e6, open: () => kernel.openConnections() },
    pods: () => [...store.snapshot.podsOn(options.node)].flatMap(({ hostNetwork, podIPs }) => (hostNetwork ? [] : podIPs)),
    table: () => dataplane.loaded && olderTable(dataplane.loaded),
  })
  const dataplane: Dataplane = stack.use(openDataplane(of, { monitor, netlink, older }))
  const sweep = new ConntrackGc({
    ...{ clock, log, monotonicMs: () => monotonicNs() / 1e6 },
    table: () => dataplane.current.flows,
    onFull: () => {
      const grows = reports.settings.config?.flowTableGrows === true && dataplane.current.grow()
      if (grows) loop.mark()
      return grows
    },
  })
  const moves = new NodeMoves({ clock, log, table: () => dataplane.current.flows })
  const fill = new MapUsage({ clock, log, maps: () => filledByPrograms(dataplane.loaded?.shared.maps) })
  const isProxyExpected = (): boolean => [...store.snapshot.podsOn(options.node)].some(isKubeProxy)
  const handOver = new ProxyHandover({
    ...{ clock, log, health, serves, run: kernel.run },
    wanted: () => reports.settings.config?.cleansProxy,
    expected: isProxyExpected,
    addresses: () => {
      const excluded = reports.settings.config?.compile.services.excluded ?? []
      return askedAddresses({ snapshot: store.snapshot, node: options.node, excluded })
    },
  })
  const kept = new KeptFlows({
    ...{ clock, log, serves, monotonicMs: () => monotonicNs() / 1e6, table: () => dataplane.current.flows, run: kernel.run },
    expected: isProxyExpected,
    present: () => handOver.isPresent,
    isOwn: (addr) => monitor.interfaces.local().some((cidr) => cidrContains(cidr, addr)),
  })
  const leftovers = new Leftovers({
    ...{ clock, log, health, serves, netlink, interfaces: monitor.interfaces, run: kernel.run },
    onDeviceGone: () => {
      dataplane.checkRoutes()
      loop.mark()
    },
  })
  monitor.start(monitorEvents(dataplane, monitor, of))
  const owned = stack.move()
  const parts = { dataplane, loop, sweep, fill, moves, older, handOver, kept, leftovers, monitor }
  return { ...parts, [Symbol.dispose]: () => owned[Symbol.dispose]() }
}

interface DataplaneParts {
  readonly monitor: InterfaceMonitor
  readonly netlink: NetlinkExchange
  readonly older: OlderConnections
}

function openDataplane(of: DataplaneSetupOptions, { monitor: { interfaces }, netlink, older }: DataplaneParts): Dataplane {
  const { options, cluster, kernel, features, log } = of
  const { pins, health, loop, desired } = cluster
  return new Dataplane({
    ...{ clock: systemClock, log, health, interfaces, netlink, features },
    generations: kernel.generations({ pins, features, interfaces }),
    hooks: kernel.hooks({ pins, interfaces }),
    sysctls: { stateFile: sysctlFile(options.stateDir), root: kernel.sysctls },
    otherProxy: () => findsOtherNat(log, kernel.run),
    onFirst: async (loaded) => {
      const table = olderTable(loaded)
      if (table !== undefined) await older.begin(table)
    },
    onLoaded: () => {
      loop.mark()
    },
    requestResync: () => {
      desired.requestResync()
      loop.mark()
    },
  })
}

function olderTable({ shared, btf }: GenerationTables): OlderTable | undefined {
  const map = shared.maps.get('np_older')
  return map && { map, btf }
}

function monitorEvents(dataplane: Dataplane, { interfaces }: InterfaceMonitor, of: DataplaneSetupOptions): MonitorEvents {
  const { source, loop } = of.cluster
  const routesChanged = (): void => {
    dataplane.checkRoutes()
    loop.mark()
  }
  return {
    interfacesChanged: (names) => {
      dataplane.interfacesChanged(names)
      loop.mark()
      leaveLostAddress({ source, log: of.log }, interfaces)
    },
    routesChanged,
    hooksOrSysctlsChanged: () => {
      dataplane.hooksOrSysctlsChanged()
      loop.mark()
    },
    overrun: routesChanged,
  }
}

/** The flow table is counted by its sweep. */
function filledByPrograms(maps: ReadonlyMap<MapName, BpfMap> = new Map<MapName, BpfMap>()): Map<string, BpfMap> {
  const names: readonly MapName[] = ['np_affinity', 'np_frags', 'np_links', 'np_paths', 'np_sockets']
  return new Map([...maps].filter(([name]) => names.includes(name)))
}

/** kube-proxy's, or an older version's. What cannot be ruled out may have been there: its connections shall live. */
async function findsOtherNat(log: Log, run: RunTool | undefined): Promise<boolean> {
  try {
    const found = await findKubeProxy(run)
    if (found.length > 0) log.info({ rules: found.map(proxyRulesText) }, 'kube-proxy.detected')
    const left = await findOldRules(run)
    if (left.length > 0) log.info({ rules: left }, 'leftovers.detected')
    return found.length + left.length > 0
  } catch (thrown) {
    log.warn({ error: thrown }, 'kube-proxy.detect-failed')
    return true
  }
}
