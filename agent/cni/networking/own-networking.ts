// SPDX-License-Identifier: Apache-2.0
/** Own mode: Netplane gives the pod its addresses and makes its veth. Layer: agent/cni. */
import { withinLimits, waitUntil, type Notifier } from '#lib/base/async/wait.ts'
import type { Clock } from '#lib/base/clock.ts'
import type { Addr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { Log } from '#lib/obs/log.ts'
import { refOf, type Attachment } from '../attachments.ts'
import { CniError } from '../cni-error.ts'
import type { AddressSource } from '../pod-addresses.ts'
import { leastMtu } from './mtu.ts'
import type { AddCall, PodNetworking } from './pod-networking.ts'
import type { PodVeth } from './pod-veth.ts'
import { addResult } from '../result.ts'

/** Makes pods' veths. */
export interface VethMaker {
  /** Both ends, not up. What had its name goes. */
  create(veth: PodVeth): void
  /** Both ends go up, with addresses and routes. May be done again. */
  raise(veth: PodVeth): RaisedVeth
  /** Both ends go, unless the name is by now that of another sandbox's. Nothing happens when it is not there. */
  remove(veth: Pick<PodVeth, 'host' | 'containerId'>): void
  /** What differs from how it was made; undefined: nothing. Throws when its namespace cannot be entered. */
  whatDiffers(veth: PodVeth): string | undefined
}

/** The kernel has said yes to all of it, and is not done yet. */
export interface RaisedVeth extends Disposable {
  /** without which packets to the pod are lost; undefined: nothing */
  missing(): string | undefined
  readonly changed: readonly Notifier[]
}

export interface OwnNetworkingOptions {
  readonly addresses: AddressSource
  readonly veths: VethMaker
  /** of pods' interfaces */
  readonly interfacePrefix: () => string
  /** of a pod with these addresses, unless the network configuration says it */
  readonly mtu: (addresses: readonly Addr[]) => number
  readonly clock: Pick<Clock, 'after' | 'now'>
  readonly log: Log
}

export class OwnNetworking implements PodNetworking {
  readonly #options: OwnNetworkingOptions

  constructor(options: OwnNetworkingOptions) {
    this.#options = options
  }

  async plan(
    { request: { sandbox, config, environment }, pod, add, limits }: AddCall,
    before: Attachment | undefined,
  ): Promise<Attachment> {
    if (before !== undefined) return { ...before, netns: sandbox.netns }
    const { addresses: source, interfacePrefix, mtu, clock } = this.#options
    // no caller waits after the deadline, either
    const isWanted = (): boolean => clock.now() < limits.deadline && !add.signal.aborted
    const work = source.assign({ sandbox, pod, config, path: environment.path, isWanted })
    // addresses of another plugin are not garbage-collected
    if (config.ipam !== undefined) add.keep(work)
    // what comes in the moment after has no sandbox, and is collected
    const { addresses, delegate } = await withinLimits(work, 'its address is not written down yet', limits)
    const host = workloadInterface(refOf(sandbox), interfacePrefix())
    return { ...sandbox, host, mtu: config.mtu ?? mtu(addresses), addresses, delegate, ours: true }
  }

  create(attachment: Attachment, before: Attachment | undefined): void {
    const least = leastMtu(attachment.addresses)
    if (attachment.mtu < least) throw new CniError('config', `mtu: must be at least ${least} for a pod with an IPv6 address`)
    if (before === undefined || this.#hasChanged(attachment)) this.#options.veths.create(attachment)
  }

  async activate(attachment: Attachment, { request: { config }, limits }: AddCall): Promise<string> {
    using veth = this.#options.veths.raise(attachment)
    await waitUntil({ ...limits, missing: () => veth.missing(), wokenBy: veth.changed })
    return addResult(attachment, config.cniVersion)
  }

  whatDiffers(attachment: Attachment): string | undefined {
    return this.#options.veths.whatDiffers(attachment)
  }

  removeDevices(attachment: Attachment): void {
    this.#options.veths.remove(attachment)
  }

  async releaseDelegated(attachment: Attachment, path: string): Promise<void> {
    await this.#options.addresses.releaseDelegated(attachment, path)
  }

  /** Or later: what has no sandbox is collected, and no runtime has to ask again for that. */
  async releaseOwn(attachment: Attachment, deadline: number): Promise<void> {
    const { addresses, clock, log } = this.#options
    const done = addresses.releaseOwn(attachment, () => clock.now() < deadline)
    await withinLimits(done, 'its address is not given back yet', { clock, deadline }).catch((error: unknown) => {
      log.warn({ containerId: attachment.containerId, error }, 'ipam.release-deferred')
    })
  }

  #hasChanged(attachment: Attachment): boolean {
    try {
      return this.#options.veths.whatDiffers(attachment) !== undefined
    } catch {
      // its namespace is not the one of then
      return true
    }
  }
}
