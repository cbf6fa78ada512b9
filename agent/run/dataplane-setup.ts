// SPDX-License-Identifier: Apache-2.0
/** The parts of a running agent, and which events each of them gets. Layer: agent. */
import { monotonicNs, NetlinkSocket, raiseMemlock, type BpfMap } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Store } from '#lib/store/store.ts'
import { kernelHooks } from '../dataplane/attach/kernel-hooks.ts'
import { Dataplane } from '../dataplane/dataplane.ts'
import { PinnedGenerations } from '../dataplane/pinned-generations.ts'
import { probeFeatures, type Features } from '../dataplane/programs/kernel-features.ts'
import { NodeMoves } from '../dataplane/conntrack/node-moves.ts'
import { ConntrackGc } from '../dataplane/conntrack/gc.ts'
import { ProxyHandover } from '../dataplane/kube-proxy/handover.ts'
import { findKubeProxy, proxyRulesText } from '../dataplane/kube-proxy/cleanup.ts'
import { ApplyLoop } from '../dataplane/reconcile/loop.ts'
import { selfAddresses } from '../dataplane/host/devices.ts'
import { MapUsage } from '../dataplane/maps/map-usage.ts'
import type { Pins } from '../dataplane/pins.ts'
import { InterfaceMonitor, MONITOR_BUFFER_BYTES, MONITOR_GROUPS } from '../interfaces/monitor.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import type { Interfaces } from '../interfaces/table.ts'
import type { MapName } from '../maps/catalogue.ts'
import { countsMemlock, packageObjects } from '../node/facts.ts'
import { sysctlFile } from './state-files.ts'
import type { AgentOptions } from './options.ts'
import type { CompileResult, DesiredState } from './desired-state.ts'

export interface DataplaneSetupOptions {
  readonly options: AgentOptions
  readonly pins: Pins
  readonly features: Features
  readonly store: Store
  readonly wanted: DesiredState
  readonly log: Log
  readonly health: Health
  /** gets what each compilation came to, before the data plane does */
  readonly report: (result: CompileResult) => void
  /** seconds of each pass */
  readonly onPass: (seconds: number) => void
  /** may the flow table become larger than the settings say */
  readonly mayGrow: () => boolean
  /** may kube-proxy's rules go; undefined: not known yet */
  readonly cleansProxy: () => boolean | undefined
  /** everything that was taken so far is in the kernel */
  readonly onSettled: () => void
  /** after interfaces or their addresses changed */
  readonly onInterfaces: (interfaces: Interfaces) => void
}

export interface DataplaneSetup extends Disposable {
  readonly dataplane: Dataplane
  readonly loop: ApplyLoop
  readonly sweep: ConntrackGc
  readonly fill: MapUsage
  readonly moves: NodeMoves
  readonly handOver: ProxyHandover
  readonly monitor: InterfaceMonitor
}

/** What the kernel can do; from now on it may be asked to load programs. */
export function kernelFeatures(log: Log): Features {
  liftMemlock(log)
  const features = probeFeatures()
  log.info({ ...features }, 'kernel.features')
  return features
}

/** Nothing runs yet but the interface table, which is complete. Throws the addon's errors. */
export function setUpDataplane({
  options,
  pins,
  features,
  store,
  wanted,
  log,
  health,
  report,
  onPass,
  mayGrow,
  cleansProxy,
  onSettled,
  onInterfaces,
}: DataplaneSetupOptions): DataplaneSetup {
  const routes = (): void => {
    dataplane.checkRoutes()
    loop.mark()
  }
  const interfacesChanged = (names: ReadonlySet<string>): void => {
    dataplane.interfacesChanged(names)
    loop.mark()
    onInterfaces(interfaces)
  }
  const events = { interfacesChanged, routesChanged: routes, overrun: routes }
  const monitor = new InterfaceMonitor({ socket: monitorSocket(), log, events })
  const { interfaces } = monitor
  const netlink = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  const dataplane = new Dataplane({
    generations: new PinnedGenerations({ pins, objects: options.objects ?? packageObjects(), features, interfaces, clock: systemClock }),
    hooks: kernelHooks(pins.links, interfaces),
    interfaces,
    netlink: new NetlinkExchange(netlink),
    sysctls: { stateFile: sysctlFile(options.stateDir) },
    otherProxy: () => findsOtherProxy(log),
    onLoaded: () => {
      loop.mark()
    },
    clock: systemClock,
    log,
    health,
    requestResync: () => {
      wanted.requestResync()
      loop.mark()
    },
  })
  const pass = async (): Promise<number | undefined> => {
    const start = performance.now()
    const result = wanted.compile(() => selfAddresses(interfaces))
    if (store.synced) health.pass('sources.synced')
    if (result !== undefined) report(result)
    if (result?.compiled !== undefined) dataplane.setDesired(result.compiled.desired)
    const again = await dataplane.pass()
    onPass((performance.now() - start) / 1000)
    if (dataplane.isWritten) onSettled()
    return again
  }
  const loop = new ApplyLoop({ clock: systemClock, pass })
  const sweep = new ConntrackGc({
    clock: systemClock,
    log,
    monotonicMs: () => monotonicNs() / 1e6,
    table: () => dataplane.current.flows,
    onFull: () => {
      if (mayGrow() && dataplane.current.grow()) loop.mark()
    },
  })
  const moves = new NodeMoves({ clock: systemClock, log, table: () => dataplane.current.flows })
  const fill = new MapUsage({ clock: systemClock, log, maps: () => filledByPrograms(dataplane.loaded?.shared.maps) })
  const handOver = new ProxyHandover({ clock: systemClock, log, health, serves: () => dataplane.isReady, wanted: cleansProxy })
  monitor.start()
  const dispose = (): void => {
    monitor[Symbol.dispose]()
    dataplane[Symbol.dispose]()
    netlink.close()
  }
  return { dataplane, loop, sweep, fill, moves, handOver, monitor, [Symbol.dispose]: dispose }
}

/** The flow table is counted by its sweep. */
function filledByPrograms(maps: ReadonlyMap<MapName, BpfMap> = new Map<MapName, BpfMap>()): Map<string, BpfMap> {
  const names: readonly MapName[] = ['np_affinity', 'np_frags', 'np_links', 'np_sockets']
  return new Map([...maps].filter(([name]) => names.includes(name)))
}

/** One that cannot be ruled out may have been there: its connections shall live. */
async function findsOtherProxy(log: Log): Promise<boolean> {
  try {
    const found = await findKubeProxy()
    if (found.length > 0) log.info({ rules: found.map(proxyRulesText) }, 'kube-proxy.found')
    return found.length > 0
  } catch (thrown) {
    log.warn({ error: thrown }, 'kube-proxy.unknown')
    return true
  }
}

/** Kernels before 5.11 count maps against this limit; on later ones not being allowed to lift it does not matter. */
function liftMemlock(log: Log): void {
  try {
    raiseMemlock()
  } catch (thrown) {
    if (countsMemlock()) log.warn({ error: thrown, needs: 'CAP_SYS_RESOURCE, or no limit of locked memory' }, 'memlock.stays')
  }
}

function monitorSocket(): NetlinkSocket {
  return NetlinkSocket.open({ protocol: NETLINK_ROUTE, groups: MONITOR_GROUPS, receiveBufferBytes: MONITOR_BUFFER_BYTES })
}
