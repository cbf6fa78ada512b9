// SPDX-License-Identifier: Apache-2.0
/** The parts of a running agent and who hears whom. Layer: agent. */
import { join } from 'node:path'
import { NetlinkSocket, raiseMemlock } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Store } from '#lib/store/store.ts'
import { Dataplane } from './dataplane/dataplane.ts'
import { probeFeatures } from './dataplane/features.ts'
import { ApplyLoop } from './dataplane/loop.ts'
import { Pins } from './dataplane/pins.ts'
import { InterfaceMonitor, MONITOR_BUFFER_BYTES, MONITOR_GROUPS } from './interfaces/monitor.ts'
import { NETLINK_ROUTE, NetlinkExchange } from './interfaces/netlink/exchange.ts'
import { packageObjects } from './node/facts.ts'
import type { AgentOptions } from './options.ts'
import type { Wanted } from './wanted.ts'

export interface WiringOptions {
  readonly options: AgentOptions
  readonly store: Store
  readonly wanted: Wanted
  readonly log: Log
  readonly health: Health
  /** seconds of each pass */
  readonly onPass: (seconds: number) => void
}

export interface Wired extends Disposable {
  readonly dataplane: Dataplane
  readonly loop: ApplyLoop
  readonly monitor: InterfaceMonitor
}

/** Nothing runs yet but the interface table, which is complete. Throws the addon's errors. */
export function wire({ options, store, wanted, log, health, onPass }: WiringOptions): Wired {
  liftMemlock(log)
  const routes = (): void => {
    dataplane.checkRoutes()
    loop.mark()
  }
  const interfaces = (names: Iterable<string>): void => {
    dataplane.interfacesChanged(names)
    loop.mark()
  }
  const events = { interfacesChanged: interfaces, routesChanged: routes, overrun: routes }
  const monitor = new InterfaceMonitor({ socket: monitorSocket(), log, events })
  const netlink = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  const dataplane = new Dataplane({
    pins: new Pins(options.pinDir),
    objects: options.objects ?? packageObjects(),
    features: probeFeatures(),
    interfaces: monitor.interfaces,
    netlink: new NetlinkExchange(netlink),
    sysctlState: join(options.stateDir, 'sysctls.json'),
    clock: systemClock,
    log,
    health,
    take: (everything) => {
      const change = wanted.take(everything)
      if (store.synced) health.pass('sources.synced')
      return change
    },
  })
  const pass = async (): Promise<number | undefined> => {
    const start = performance.now()
    const again = await dataplane.pass()
    onPass((performance.now() - start) / 1000)
    return again
  }
  const loop = new ApplyLoop({ clock: systemClock, pass })
  monitor.start()
  const dispose = (): void => {
    monitor[Symbol.dispose]()
    dataplane[Symbol.dispose]()
    netlink.close()
  }
  return { dataplane, loop, monitor, [Symbol.dispose]: dispose }
}

/** Kernels before 5.11 count maps against this limit; on later ones not being allowed to lift it does not matter. */
function liftMemlock(log: Log): void {
  try {
    raiseMemlock()
  } catch (thrown) {
    log.debug({ error: thrown }, 'memlock.stays')
  }
}

function monitorSocket(): NetlinkSocket {
  return NetlinkSocket.open({ protocol: NETLINK_ROUTE, groups: MONITOR_GROUPS, receiveBufferBytes: MONITOR_BUFFER_BYTES })
}
