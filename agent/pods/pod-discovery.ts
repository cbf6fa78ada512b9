// SPDX-License-Identifier: Apache-2.0
/** Looks for pods that other CNI plugins have plugged in, where no runtime has told us: before the agent came, or
 * while it was away. Layer: agent. */
import { NetlinkSocket } from '#native'
import { backoffMs } from '#lib/base/backoff.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import type { Addr } from '#lib/base/ip.ts'
import { interfaceOf, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Store } from '#lib/store/store.ts'
import type { PodOverlaySink } from '../cni/pod-overlay-sink.ts'
import { pluggedAddresses } from '../cni/networking/veth-lookup.ts'
import type { Config } from '../config/config.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import type { Interfaces } from '../interfaces/table.ts'

export interface PodDiscoveryOptions {
  readonly attached: PodOverlaySink
  readonly interfaces: Interfaces
  readonly store: Pick<Store, 'synced'>
  readonly config: () => Config
  readonly clock: Clock
  readonly log: Log
}

/** Where container runtimes keep pods' network namespaces. */
const NETNS_FOLDER = '/run/netns'
const LOOK_MS = 500
/** Pods that are not found may have no network device, or one that is not a veth. */
const AGAIN = { firstMs: 500, maxMs: 60_000 }

export class PodDiscovery implements Disposable {
  readonly #options: PodDiscoveryOptions
  readonly #socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  readonly #node = new NetlinkExchange(this.#socket)
  /** the pods that the last look was for, and the interfaces that there were */
  #last: ReadonlySet<string> = new Set()
  #attempt = 0
  #nextAt = 0

  constructor(options: PodDiscoveryOptions) {
    this.#options = options
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, store } = this.#options
    const tick = (): void => {
      if (store.synced) this.look()
    }
    await everyMs(clock, { ms: LOOK_MS, signal, run: tick })
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }

  /** First of all before what the source has is acted on: pods that an agent before had found would lose what they
   * have. */
  look(): void {
    const { attached, interfaces, config, log } = this.#options
    const prefix = config().compile.interfacePrefix
    const missing = attached.unattached().filter((pod) => interfaces.byName(interfaceOf(pod, prefix)) === undefined)
    if (missing.length === 0 || !this.#isTime(missing)) return
    try {
      const names = pluggedAddresses(this.#node, NETNS_FOLDER)
      for (const pod of missing) this.#note(pod, names)
    } catch (thrown) {
      log.warn({ error: thrown }, 'pod-discovery.failed')
    }
  }

  #note(pod: Pod, veths: ReadonlyMap<Addr, readonly string[]>): void {
    const { attached, log } = this.#options
    const [iface, ...others] = new Set(pod.podIPs.flatMap((addr) => veths.get(addr) ?? []))
    // one that was found and is gone is looked for by its own name again
    attached.find(pod, iface)
    if (iface === undefined) return
    log.info({ pod: nameKey(pod), iface }, 'pod.discovered')
    if (others.length > 0) log.warn({ pod: nameKey(pod), iface, others }, 'pod.duplicated')
  }

  /** At once when there are other pods or interfaces than before, otherwise less and less often. */
  #isTime(missing: readonly Pod[]): boolean {
    const { clock, interfaces } = this.#options
    const now = new Set([...missing.map(nameKey), ...interfaces.all().map(({ index, name }) => `${index} ${name}`)])
    if ([...now].some((one) => !this.#last.has(one))) this.#attempt = this.#nextAt = 0
    this.#last = now
    if (clock.now() < this.#nextAt) return false
    this.#nextAt = clock.now() + backoffMs(AGAIN, this.#attempt++)
    return true
  }
}
