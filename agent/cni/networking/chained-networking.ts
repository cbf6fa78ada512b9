// SPDX-License-Identifier: Apache-2.0
/** Chained mode: a plugin before us in the list has made the pod's devices and given its addresses, and takes them
 * away. We find the node's end of its veth, where the programs run. Layer: agent/cni. */
import type { Attachment } from '../attachments.ts'
import { CniError } from '../cni-error.ts'
import type { AddCall, PodNetworking } from './pod-networking.ts'

export interface ChainedNetworkingOptions {
  /** Name of the node's end of this veth. Throws CniError when it is none that could have programs. */
  readonly nodeEndOf: (pod: { readonly netns: string; readonly ifname: string }) => string
}

export class ChainedNetworking implements PodNetworking {
  readonly #options: ChainedNetworkingOptions

  constructor(options: ChainedNetworkingOptions) {
    this.#options = options
  }

  /** As it is now, also when the sandbox is added again: the other plugin may have made a new veth. */
  plan({ request: { sandbox, previous } }: AddCall): Attachment {
    if (previous === undefined) throw new CniError('config', "prevResult: is missing: the sandbox's veth is another plugin's")
    const { addresses } = previous
    if (addresses.length === 0) throw new CniError('config', `prevResult.ips: has no address of ${sandbox.ifname}`)
    const host = this.#options.nodeEndOf(sandbox)
    return { ...sandbox, host, mtu: 0, addresses, delegate: undefined, ours: false }
  }

  create(): void {
    // it is there, and up
  }

  /** What the plugins before us have answered, unchanged. */
  activate(_: Attachment, { request: { previous } }: AddCall): string {
    return previous?.text ?? ''
  }

  whatDiffers({ host, netns, ifname }: Attachment): string | undefined {
    const end = this.#options.nodeEndOf({ netns, ifname })
    return end === host ? undefined : `${ifname} has its other end at ${end}, not at ${host}`
  }

  removeDevices(): void {
    // the other plugin's
  }

  releaseDelegated(): void {
    // the other plugin's
  }

  releaseOwn(): void {
    // the other plugin's
  }
}
