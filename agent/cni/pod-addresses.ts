// SPDX-License-Identifier: Apache-2.0
/** The addresses of a sandbox: from our own blocks, or from the plugin that its network configuration names.
 * Layer: agent/cni. */
import type { Addr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { addressesInUse, inhabitedElsewhere, isAbandoned, planAddresses, rangesElsewhere, withoutPools } from '#lib/ipam/plan.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import { ownNode } from '#lib/model/node.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Ipam } from '#agent/ipam/ipam.ts'
import { holderOf, type Attachment, type Delegate } from './attachments.ts'
import { CniError } from './cni-error.ts'
import { delegateAddresses, delegateVersions, runDelegate, type DelegateCall } from './exec-plugin.ts'
import { HOST_LOCAL, hostLocalSandboxes } from './host-local.ts'
import { CNI_VERSIONS, VALID_KEYS, type NetworkConfig, type PodSandbox, type Request, type RequestOf, type Sandbox } from './request.ts'

export interface PodAddressesOptions {
  readonly ipam: Ipam
  /** this node's name */
  readonly node: string
  /** no store says which blocks other nodes have: what is known of their ranges is left to them */
  readonly isAlone: boolean
  /** folders of other plugins, besides those that the caller names */
  readonly folders: () => readonly string[]
  readonly snapshot: () => Snapshot
  /** of the node's own devices: no pod gets one */
  readonly held: () => readonly Addr[]
  /** false: all addresses are of the Node's own ranges */
  readonly hasPools: boolean
  readonly log: Log
}

export interface AddressCall {
  readonly sandbox: PodSandbox
  readonly pod: Pod
  readonly config: Pick<NetworkConfig, 'ipam' | 'text'>
  /** CNI_PATH */
  readonly path: string
  /** true while a caller waits for them */
  readonly isWanted: () => boolean
}

/** What a call says of its network. */
type OfNetwork = Pick<Request, 'config' | 'environment'>
type UnknownSandbox = Pick<RequestOf<'DEL'>, 'sandbox' | 'config' | 'environment'>

interface WithoutGc {
  /** of CNI, that the plugin speaks */
  readonly versions: readonly string[]
  readonly valid: readonly Sandbox[]
}

/** What is to be known of them until they are given back. */
export type Addresses = Pick<Attachment, 'addresses' | 'delegate'>

/** Where the addresses of our own pods come from, and go back to. Everything may be done again. */
export interface AddressSource {
  /** Rejects with CniError, AddressError, or whatever the store throws. */
  assign(call: AddressCall): Promise<Addresses>
  /** To be called before the sandbox is forgotten: only its attachment says which of another plugin's addresses it has.
   * `path`: the caller's CNI_PATH, if there is one. */
  releaseDelegated(attachment: Attachment, path: string): Promise<void>
  /** For a sandbox without an attachment: the agent may have died after the other plugin gave addresses and before they
   * were written down. */
  releaseUnknown(request: UnknownSandbox): Promise<void>
  /** To be called after the sandbox was forgotten: a crash in between leaves addresses without a sandbox, which garbage
   * collection finds. */
  releaseOwn(attachment: Attachment, isWanted: () => boolean): Promise<void>
  /** Gives back the addresses of these holders, and blocks that no pod needs. An address by which the source knows a
   * pod of this node stays, even if its sandbox is forgotten. Returns how many addresses. */
  collect(isGone: (holder: Holder) => boolean): Promise<number>
  /** Of the plugin that this configuration names: it gives back what none of these sandboxes has. Of a node that has
   * lost its state only that plugin knows which addresses it gave. */
  collectDelegated(request: OfNetwork, valid: readonly Sandbox[]): Promise<void>
  /** Rejects with what that plugin finds wrong with the addresses of the sandbox. */
  checkDelegated(attachment: Attachment, request: OfNetwork): Promise<void>
  /** Rejects with why that plugin can give none. */
  statusDelegated(request: OfNetwork): Promise<void>
}

/** Of a node whose pods are plugged in by another plugin. */
export const NO_ADDRESSES: AddressSource = {
  assign: () => Promise.reject(new CniError('config', "prevResult: is missing: this node's pods are plugged in by another plugin")),
  releaseDelegated: () => Promise.resolve(),
  releaseUnknown: () => Promise.resolve(),
  releaseOwn: () => Promise.resolve(),
  collect: () => Promise.resolve(0),
  collectDelegated: () => Promise.resolve(),
  checkDelegated: () => Promise.resolve(),
  statusDelegated: () => Promise.resolve(),
}

export class PodAddresses implements AddressSource {
  readonly #options: PodAddressesOptions

  constructor(options: PodAddressesOptions) {
    this.#options = options
  }

  async assign(call: AddressCall): Promise<Addresses> {
    const { sandbox, config, path, isWanted } = call
    const { log } = this.#options
    if (config.ipam === undefined) return { addresses: await this.#own(call), delegate: undefined }
    const delegate = { type: config.ipam, config: config.text, path }
    const other = this.#call(environmentOf(sandbox), delegate)
    refuseUnwanted(isWanted)
    try {
      const addresses = await delegateAddresses(other)
      // addresses of another plugin are not garbage-collected
      refuseUnwanted(isWanted)
      return { addresses, delegate }
    } catch (thrown) {
      // it may have given some; that it failed is what is to be said
      await runDelegate({ ...other, command: 'DEL' }).catch((error: unknown) => {
        log.warn({ containerId: sandbox.containerId, type: delegate.type, error }, 'cni.delegate-failed')
      })
      throw thrown
    }
  }

  async releaseDelegated({ delegate, ...sandbox }: Attachment, path: string): Promise<void> {
    if (delegate === undefined) return
    await runDelegate({ ...this.#call(environmentOf(sandbox), { ...delegate, path: path || delegate.path }), command: 'DEL' })
  }

  async releaseUnknown({ sandbox, config, environment: { args, path } }: UnknownSandbox): Promise<void> {
    if (config.ipam === undefined) return
    const environment = { CNI_CONTAINERID: sandbox.containerId, CNI_NETNS: '', CNI_IFNAME: sandbox.ifname, CNI_ARGS: args }
    await runDelegate({ ...this.#call(environment, { type: config.ipam, config: config.text, path }), command: 'DEL' })
  }

  async releaseOwn(attachment: Attachment, isWanted: () => boolean): Promise<void> {
    const holder = holderOf(attachment)
    if (attachment.delegate === undefined)
      await this.#options.ipam.release(({ containerId }) => containerId === holder.containerId, isWanted)
  }

  async collect(isGone: (holder: Holder) => boolean): Promise<number> {
    const { ipam, node, isAlone } = this.#options
    const snapshot = this.#options.snapshot()
    const inUse = addressesInUse(snapshot, node)
    const count = await ipam.release((holder, addr) => isGone(holder) && !inUse.has(addr))
    const own = ownNode(snapshot, node)
    // a Node object that was deleted and created again does not have them
    await ipam.tidy([...snapshot.pools.values()], isAlone || own === undefined ? undefined : (own.blocks ?? []))
    return count
  }

  async collectDelegated({ config, environment }: OfNetwork, valid: readonly Sandbox[]): Promise<void> {
    const { ipam: type, text } = config
    if (type === undefined) return
    const call = this.#call({}, { type, config: withValid(text, valid), path: environment.path })
    const versions = await this.#tryVerb({ ...call, command: 'GC' })
    if (versions !== undefined) await this.#collectWithout({ ...call, config: text }, { versions, valid })
  }

  async statusDelegated({ config, environment }: OfNetwork): Promise<void> {
    const { ipam: type, text } = config
    if (type !== undefined) await this.#tryVerb({ ...this.#call({}, { type, config: text, path: environment.path }), command: 'STATUS' })
  }

  /** Undefined: it is done. Of a plugin that is older than the verb, the versions that it speaks. */
  async #tryVerb(call: DelegateCall): Promise<readonly string[] | undefined> {
    try {
      await runDelegate(call)
      return undefined
    } catch (thrown) {
      const versions = await delegateVersions(call)
      if (versions.includes(WITH_VERBS)) throw thrown
      return versions
    }
  }

  /** Of a plugin that does not know the verb: one whose files say what it gave is asked to take each back. */
  async #collectWithout(call: Omit<DelegateCall, 'command'>, { versions, valid }: WithoutGc): Promise<void> {
    const { log } = this.#options
    const { type } = call
    if (type !== HOST_LOCAL) {
      log.warn({ type, reason: `it does not speak CNI ${WITH_VERBS}` }, 'cni.gc-not-passed-on')
      return
    }
    const config = { ...parsed(call.config), cniVersion: CNI_VERSIONS.findLast((version) => versions.includes(version)) }
    const stays = new Set(valid.map(({ containerId, ifname }) => `${containerId} ${ifname}`))
    for (const { containerId, ifname } of hostLocalSandboxes(config)) {
      if (stays.has(`${containerId} ${ifname}`)) continue
      const environment = { ...call.environment, CNI_CONTAINERID: containerId, CNI_IFNAME: ifname, CNI_NETNS: '' }
      await runDelegate({ ...call, config: JSON.stringify(config), environment, command: 'DEL' })
      log.warn({ containerId, type }, 'cni.delegated-leak-collected')
    }
  }

  async checkDelegated({ delegate, ...sandbox }: Attachment, { config, environment }: OfNetwork): Promise<void> {
    if (delegate === undefined) return
    const { type } = delegate
    await runDelegate({
      ...this.#call(environmentOf(sandbox), { type, config: config.text, path: environment.path || delegate.path }),
      command: 'CHECK',
    })
  }

  async #own({ sandbox, pod, isWanted }: AddressCall): Promise<readonly Addr[]> {
    const { ipam, node, isAlone, hasPools, held } = this.#options
    const snapshot = this.#options.snapshot()
    return await ipam.assign({
      holder: holderOf(sandbox),
      plans: planAddresses(pod, hasPools ? snapshot : withoutPools(snapshot), node),
      inUse: new Set([...addressesInUse(snapshot, node, pod), ...held()]),
      elsewhere: rangesElsewhere(snapshot, node, isAlone),
      isInhabited: inhabitedElsewhere(snapshot, node),
      isAbandoned: (block) => isAbandoned(block, snapshot),
      isWanted,
    })
  }

  #call(environment: Readonly<Record<string, string>>, { path, ...delegate }: Delegate): Omit<DelegateCall, 'command'> {
    const folders = [...new Set([...path.split(':').filter((folder) => folder.startsWith('/')), ...this.#options.folders()])]
    return { ...delegate, folders, environment: { ...environment, CNI_PATH: folders.join(':') }, timeoutMs: DELEGATE_MS }
  }
}

function environmentOf(sandbox: PodSandbox): Readonly<Record<string, string>> {
  return {
    CNI_CONTAINERID: sandbox.containerId,
    CNI_NETNS: sandbox.netns,
    CNI_IFNAME: sandbox.ifname,
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${sandbox.namespace};K8S_POD_NAME=${sandbox.pod}`,
  }
}

/** The configuration, with these as those that stay. */
function withValid(text: string, valid: readonly Sandbox[]): string {
  const list = valid.map(({ containerId, ifname }) => ({ containerID: containerId, ifname }))
  return JSON.stringify({ ...parsed(text), cniVersion: WITH_VERBS, ...Object.fromEntries(VALID_KEYS.map((key) => [key, list])) })
}

/** It was read before. */
function parsed(text: string): Readonly<Record<string, unknown>> {
  const config: unknown = JSON.parse(text)
  return isObject(config) ? config : {}
}

function refuseUnwanted(isWanted: () => boolean): void {
  if (!isWanted()) throw new CniError('tryAgain', 'the call for its address has ended')
}

/** The first version of CNI that has the verbs GC and STATUS. */
const WITH_VERBS = '1.1.0'
/** A plugin that only looks into its files. */
const DELEGATE_MS = 20_000
