// SPDX-License-Identifier: Apache-2.0
/** The verbs of CNI. What is given away is on disk before it is used, and used before it is answered. Layer: agent/cni. */
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import { addressesInUse, isAbandoned, planAddresses, rangesElsewhere } from '#lib/ipam/plan.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import { workloadInterface, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Ipam } from '#agent/ipam/ipam.ts'
import { OneAtATime } from '#agent/ipam/one-at-a-time.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { AttachedPods } from './attached-pods.ts'
import { attachedBy, holderOf, refOf, refuseOther, type Attachment, type AttachmentFiles } from './attachments.ts'
import { CniError, errorAnswer } from './cni-error.ts'
import { delegateAddresses, runDelegate, type DelegateCall } from './delegate.ts'
import { nodeEndOf, whatMoved } from './plugged.ts'
import { createLink, hasChanged, missingOfLink, raiseLink, removeLink, removeOwnLink, whatDiffers } from './pod-link.ts'
import { parseRequest, versionOf, type PodSandbox, type PreviousResult, type Request } from './request.ts'
import { addResult } from './result.ts'
import type { Waiting } from './waiting.ts'

/** What the node is asked for a pod. */
export interface PodNode {
  readonly snapshot: Snapshot
  readonly synced: boolean
  /** of pods' interfaces */
  readonly interfacePrefix: string
  mtu(addresses: readonly Addr[]): number
  /** what the kernel lacks of a pod; undefined: nothing */
  missingOf(pod: { readonly iface: string; readonly addresses: readonly Addr[] }): string | undefined
  /** why no pod can be served; undefined: they can */
  notReady(): string | undefined
}

export interface PluginOptions {
  /** this node's name */
  readonly node: string
  readonly attachments: AttachmentFiles
  readonly pods: AttachedPods
  /** undefined: pods are plugged in by another plugin, before us in the list */
  readonly ipam: Ipam | undefined
  readonly netlink: NetlinkExchange
  readonly waiting: Waiting
  readonly clock: Clock
  readonly log: Log
  readonly of: PodNode
  /** no store says which blocks other nodes have: what is known of their ranges is left to them */
  readonly isAlone: boolean
  /** folders of other plugins, besides those that the caller names */
  readonly folders: readonly string[]
}

export interface Answer {
  /** exit status of the shim */
  readonly status: 0 | 1
  readonly output: string
}

type Of<C extends Request['command']> = Extract<Request, { readonly command: C }>

export class Plugin {
  readonly #options: PluginOptions
  /** by pod: two calls for one pod wait for each other */
  readonly #turns = new Map<string, OneAtATime>()
  /** sandboxes that are being added: they may have an address already and be on no disk yet */
  readonly #adding = new Set<PodSandbox>()

  constructor(options: PluginOptions) {
    this.#options = options
  }

  /** What an agent before has left is in force again. */
  start(): void {
    const { attachments, pods, log } = this.#options
    for (const problem of attachments.load()) log.error({ problem }, 'cni.attachment-unreadable')
    for (const one of attachments.all()) pods.attach(refOf(one), attachedBy(one))
  }

  /** Never rejects, whatever the line is. */
  async call(line: string): Promise<Answer> {
    const { log, clock } = this.#options
    const start = clock.now()
    const version = versionOf(line)
    try {
      const request = parseRequest(line)
      const output = await this.#run(request)
      const ms = Math.round(clock.now() - start)
      log.info({ command: request.command, ...('sandbox' in request ? request.sandbox : {}), ms }, 'cni.done')
      return { status: 0, output }
    } catch (thrown) {
      log.warn({ error: thrown, call: line.slice(0, SHOWN) }, 'cni.failed')
      return { status: 1, output: errorAnswer(thrown, version) }
    }
  }

  /** Gives back what no sandbox has. */
  async collect(): Promise<void> {
    const { ipam, attachments, log } = this.#options
    if (ipam === undefined) return
    const isKnown = ({ containerId }: Holder): boolean =>
      this.#beingAdded(containerId) !== undefined || attachments.ofSandbox(containerId) !== undefined
    const count = await ipam.release((holder) => !isKnown(holder))
    if (count > 0) log.warn({ count }, 'ipam.leak-collected')
    await ipam.tidy()
  }

  /** Takes away the cable and the address of a sandbox that is gone. */
  async remove(attachment: Attachment): Promise<void> {
    await this.#turn(attachment, () => this.#remove(attachment))
  }

  async #run(request: Request): Promise<string> {
    switch (request.command) {
      case 'ADD': {
        const { sandbox } = request
        this.#adding.add(sandbox)
        try {
          return await this.#turn(sandbox, () => this.#add(request))
        } finally {
          this.#adding.delete(sandbox)
        }
      }
      case 'DEL':
        await this.#del(request)
        return ''
      case 'CHECK':
        this.#check(request)
        return ''
      case 'GC':
        await this.#gc(request)
        return ''
      case 'STATUS': {
        const reason = this.#options.of.notReady()
        if (reason !== undefined) throw new CniError('notReady', reason)
        return ''
      }
    }
  }

  async #add(request: Of<'ADD'>): Promise<string> {
    const { attachments, clock, pods, waiting, netlink, of } = this.#options
    const { sandbox, config } = request
    const deadline = clock.now() + config.timeoutMs
    await waiting.until(() => this.#unknown(sandbox), deadline)
    const before = attachments.ofSandbox(sandbox.containerId)
    refuseOther(before, sandbox)
    const attachment = before === undefined ? await this.#first(request) : this.#again(before, request)
    try {
      attachments.save(attachment)
      if (attachment.ours && (before === undefined || hasChanged(netlink, attachment))) {
        removeLink(netlink, attachment.host)
        createLink(netlink, attachment)
      }
      pods.attach(refOf(attachment), attachedBy(attachment))
      await waiting.until(() => {
        // whoever deletes it waits for us
        this.#known(sandbox)
        return of.missingOf({ iface: attachment.host, addresses: attachment.addresses })
      }, deadline)
      if (request.previous !== undefined) return request.previous.text
      raiseLink(netlink, attachment)
      await waiting.poll(() => missingOfLink(netlink, attachment), deadline)
      return addResult(attachment, config.cniVersion)
    } catch (thrown) {
      if (before === undefined) await this.#remove(attachment).catch((more: unknown) => this.#sayLeft(attachment, more))
      throw thrown
    }
  }

  /** A new one, with addresses; what another sandbox of this pod had goes first. */
  async #first(request: Of<'ADD'>): Promise<Attachment> {
    const { attachments, pods, ipam } = this.#options
    const { sandbox, previous } = request
    const ref = refOf(sandbox)
    const former = attachments.ofPod(ref)
    if (former !== undefined) await this.#remove(former)
    if (pods.known(ref)?.hostNetwork === true) throw new CniError('config', `Pod ${nameKey(ref)}: is in the host's network`)
    return previous === undefined ? await this.#lease(request, ipam) : this.#plugged(sandbox, previous)
  }

  /** What it has already. Another plugin may have plugged it in anew. */
  #again(before: Attachment, { sandbox, previous }: Of<'ADD'>): Attachment {
    return before.ours || previous === undefined ? { ...before, netns: sandbox.netns } : this.#plugged(sandbox, previous)
  }

  #plugged(sandbox: PodSandbox, { addresses }: PreviousResult): Attachment {
    if (addresses.length === 0) throw new CniError('config', `prevResult.ips: has no address of ${sandbox.ifname}`)
    return { ...sandbox, host: nodeEndOf(this.#options.netlink, sandbox), mtu: 0, addresses, delegate: undefined, ours: false }
  }

  async #lease({ sandbox, config, environment }: Of<'ADD'>, ipam: Ipam | undefined): Promise<Attachment> {
    if (ipam === undefined) throw new CniError('config', "prevResult: is missing: this node's pods are plugged in by another plugin")
    const { of } = this.#options
    const host = workloadInterface(refOf(sandbox), of.interfacePrefix)
    const delegate = config.ipam === undefined ? undefined : { type: config.ipam, config: config.text }
    const addresses =
      delegate === undefined
        ? await this.#ownAddresses(sandbox, ipam)
        : await delegateAddresses({ ...this.#delegateCall(sandbox, environment.path), ...delegate })
    return { ...sandbox, host, mtu: config.mtu ?? of.mtu(addresses), addresses, delegate, ours: true }
  }

  async #ownAddresses(sandbox: PodSandbox, ipam: Ipam): Promise<readonly Addr[]> {
    const { of, node, isAlone } = this.#options
    const pod = this.#known(sandbox)
    const { snapshot } = of
    return await ipam.assign({
      holder: holderOf(sandbox),
      plans: planAddresses(pod, snapshot, node),
      inUse: addressesInUse(snapshot, node),
      elsewhere: rangesElsewhere(snapshot, node, isAlone),
      isAbandoned: (block) => isAbandoned(block, snapshot),
    })
  }

  async #del({ sandbox, environment }: Of<'DEL'>): Promise<void> {
    const { attachments } = this.#options
    // one that is still being added is waited for: who asked for it has given up
    const known = attachments.ofSandbox(sandbox.containerId) ?? this.#beingAdded(sandbox.containerId)
    if (known === undefined) return
    await this.#turn(known, async () => {
      const attachment = attachments.ofSandbox(sandbox.containerId)
      if (attachment?.ifname === sandbox.ifname) await this.#remove(attachment, environment.path)
    })
  }

  #check({ sandbox, addresses }: Of<'CHECK'>): void {
    const { attachments, netlink, of } = this.#options
    const attachment = attachments.ofSandbox(sandbox.containerId)
    if (attachment?.ifname !== sandbox.ifname)
      throw new CniError('unknownContainer', `there is no ${sandbox.ifname} of ${sandbox.containerId}`)
    const lost = addresses.find((addr) => !attachment.addresses.includes(addr))
    const reason =
      (lost && `${formatAddr(lost)} is not the pod's`) ??
      (attachment.ours
        ? whatDiffers(netlink, { ...attachment, netns: sandbox.netns })
        : whatMoved(netlink, { ...attachment, netns: sandbox.netns })) ??
      of.missingOf({ iface: attachment.host, addresses: attachment.addresses })
    if (reason !== undefined) throw new CniError('differs', reason)
  }

  async #gc({ valid, environment }: Of<'GC'>): Promise<void> {
    const keep = new Set(valid.map(({ containerId, ifname }) => `${containerId} ${ifname}`))
    const gone = this.#options.attachments.all().filter(({ containerId, ifname }) => !keep.has(`${containerId} ${ifname}`))
    for (const attachment of gone) await this.#turn(attachment, () => this.#remove(attachment, environment.path))
    await this.collect()
  }

  /** The cable, then what is known of it, then the address: whoever dies in between leaves an address without a sandbox, which is found.
   * Only the other plugin can find its own, so there it goes first. */
  async #remove(attachment: Attachment, path = ''): Promise<void> {
    const { attachments, netlink, pods, ipam } = this.#options
    const { delegate } = attachment
    // one that took its place may have the name by now
    if (attachments.ofPod(refOf(attachment))?.containerId === attachment.containerId) {
      if (attachment.ours) removeOwnLink(netlink, attachment)
      pods.attach(refOf(attachment), undefined)
    }
    if (delegate !== undefined) await runDelegate({ ...this.#delegateCall(attachment, path), ...delegate, command: 'DEL' })
    attachments.forget(attachment)
    const holder = holderOf(attachment)
    if (attachment.ours && delegate === undefined) await ipam?.release(({ containerId }) => containerId === holder.containerId)
  }

  #delegateCall(sandbox: PodSandbox, path: string): Omit<DelegateCall, 'command' | 'type' | 'config'> {
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

  /** Runtimes that were killed ask for one again while we are still at it. */
  #beingAdded(containerId: string): PodSandbox | undefined {
    return [...this.#adding].find((sandbox) => sandbox.containerId === containerId)
  }

  /** Throws CniError when no source has it any more. */
  #known(sandbox: PodSandbox): Pod {
    const pod = this.#options.pods.known(refOf(sandbox))
    if (pod === undefined) throw new CniError('tryAgain', `Pod ${nameKey(refOf(sandbox))} is gone`)
    return pod
  }

  #unknown(sandbox: PodSandbox): string | undefined {
    const { of, pods, node } = this.#options
    if (!of.synced) return 'the sources are not read yet'
    return pods.known(refOf(sandbox)) === undefined ? `no source has Pod ${nameKey(refOf(sandbox))} on node ${node}` : undefined
  }

  #sayLeft(attachment: Attachment, error: unknown): void {
    this.#options.log.error({ containerId: attachment.containerId, reason: errorText(error), error }, 'cni.left-behind')
  }

  async #turn<T>(sandbox: PodSandbox, work: () => Promise<T>): Promise<T> {
    const key = nameKey(refOf(sandbox))
    const turns = this.#turns.get(key) ?? new OneAtATime()
    this.#turns.set(key, turns)
    try {
      return await turns.run(work)
    } finally {
      if (turns.idle) this.#turns.delete(key)
    }
  }
}

const SHOWN = 500
/** A plugin that only looks into its files. */
const DELEGATE_MS = 20_000
