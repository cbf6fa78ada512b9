// SPDX-License-Identifier: Apache-2.0
/** The addresses of a sandbox: from our own blocks, or from the plugin that its network configuration names. Layer: agent/cni. */
import type { Addr } from '#lib/base/ip.ts'
import { addressesInUse, isAbandoned, planAddresses, rangesElsewhere } from '#lib/ipam/plan.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import type { Ipam } from '#agent/ipam/ipam.ts'
import { holderOf, type Attachment } from './attachments.ts'
import { delegateAddresses, runDelegate, type DelegateCall } from './delegate.ts'
import type { NetworkConfig, PodSandbox } from './request.ts'

export interface PodAddressesOptions {
  readonly ipam: Ipam
  /** this node's name */
  readonly node: string
  /** no store says which blocks other nodes have: what is known of their ranges is left to them */
  readonly isAlone: boolean
  /** folders of other plugins, besides those that the caller names */
  readonly folders: readonly string[]
  readonly snapshot: () => Snapshot
}

export interface AddressCall {
  readonly sandbox: PodSandbox
  readonly pod: Pod
  readonly config: Pick<NetworkConfig, 'ipam' | 'text'>
  /** CNI_PATH */
  readonly path: string
}

/** What is to be known of them until they are given back. */
export type Addresses = Pick<Attachment, 'addresses' | 'delegate'>

export class PodAddresses {
  readonly #options: PodAddressesOptions

  constructor(options: PodAddressesOptions) {
    this.#options = options
  }

  /** Rejects with CniError, AddressError, or whatever the store throws. */
  async assign({ sandbox, pod, config, path }: AddressCall): Promise<Addresses> {
    if (config.ipam === undefined) return { addresses: await this.#own(sandbox, pod), delegate: undefined }
    const delegate = { type: config.ipam, config: config.text }
    return { addresses: await delegateAddresses({ ...this.#call(sandbox, path), ...delegate }), delegate }
  }

  /** Before the sandbox is forgotten: who has another plugin's addresses is written nowhere else. */
  async releaseDelegated({ delegate, ...sandbox }: Attachment, path: string): Promise<void> {
    if (delegate !== undefined) await runDelegate({ ...this.#call(sandbox, path), ...delegate, command: 'DEL' })
  }

  /** After the sandbox was forgotten: whoever dies in between leaves addresses without a sandbox, which are found. */
  async releaseOwn(attachment: Attachment): Promise<void> {
    const holder = holderOf(attachment)
    if (attachment.delegate === undefined) await this.#options.ipam.release(({ containerId }) => containerId === holder.containerId)
  }

  /** Gives back what these holders have, and blocks that nobody needs. Returns how many addresses. */
  async collect(isGone: (holder: Holder) => boolean): Promise<number> {
    const count = await this.#options.ipam.release(isGone)
    await this.#options.ipam.tidy()
    return count
  }

  async #own(sandbox: PodSandbox, pod: Pod): Promise<readonly Addr[]> {
    const { ipam, node, isAlone } = this.#options
    const snapshot = this.#options.snapshot()
    return await ipam.assign({
      holder: holderOf(sandbox),
      plans: planAddresses(pod, snapshot, node),
      inUse: addressesInUse(snapshot, node),
      elsewhere: rangesElsewhere(snapshot, node, isAlone),
      isAbandoned: (block) => isAbandoned(block, snapshot),
    })
  }

  #call(sandbox: PodSandbox, path: string): Omit<DelegateCall, 'command' | 'type' | 'config'> {
    const folders = [...new Set([...path.split(':').filter((folder) => folder.startsWith('/')), ...this.#options.folders])]
    const environment = {
      CNI_CONTAINERID: sandbox.containerId,
      CNI_NETNS: sandbox.netns,
      CNI_IFNAME: sandbox.ifname,
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${sandbox.namespace};K8S_POD_NAME=${sandbox.pod}`,
      CNI_PATH: folders.join(':'),
    }
    return { folders, environment, timeoutMs: DELEGATE_MS }
  }
}

/** A plugin that only looks into its files. */
const DELEGATE_MS = 20_000
