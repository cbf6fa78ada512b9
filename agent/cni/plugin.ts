// SPDX-License-Identifier: Apache-2.0
/** The verbs of CNI. What is given away is on disk before it is used, and used before it is answered.
 * Layer: agent/cni. */
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import { workloadInterface, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Log } from '#lib/obs/log.ts'
import { Semaphore } from '#lib/base/semaphore.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { InProgressAdds } from './in-progress-adds.ts'
import type { PodOverlaySink } from './pod-overlay-sink.ts'
import { attachedBy, refOf, refuseOther, type Attachment, type AttachmentFiles } from './attachments.ts'
import { CNI_CODES, CniError, errorAnswer } from './cni-error.ts'
import { nodeEndOf, whatMoved } from './networking/veth-lookup.ts'
import type { PodAddresses } from './pod-addresses.ts'
import { createVeth, hasChanged, vethOf, missingOfVeth, raiseVeth, removeVeth, removeOwnVeth, whatDiffers } from './networking/pod-veth.ts'
import { parseRequest, versionOf, type PodSandbox, type PreviousResult, type Request } from './request.ts'
import { addResult } from './result.ts'
import type { ConditionWaiter } from './condition-waiter.ts'

/** What the node is asked for a pod. */
export interface PodNode {
  readonly synced: boolean
  /** other nodes know where pods of this one are */
  readonly announced: boolean
  /** of pods' interfaces */
  readonly interfacePrefix: string
  mtu(addresses: readonly Addr[]): number
  /** what the kernel lacks of a pod; undefined: nothing */
  missingOf(pod: PodPlace): string | undefined
  /** why no pod can be served; undefined: they can */
  notReady(): string | undefined
}

/** Where a pod is on the node. */
interface PodPlace {
  readonly iface: string
  /** of the interface, as it is now */
  readonly index: number
  readonly addresses: readonly Addr[]
}

export interface PluginOptions {
  /** this node's name */
  readonly node: string
  readonly attachments: AttachmentFiles
  readonly pods: PodOverlaySink
  /** undefined: pods are plugged in by another plugin, before us in the list */
  readonly addresses: PodAddresses | undefined
  readonly netlink: NetlinkExchange
  readonly waiting: ConditionWaiter
  readonly clock: Clock
  readonly log: Log
  readonly of: PodNode
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
  readonly #turns = new Map<string, Semaphore>()
  readonly #adding: InProgressAdds
  /** the last answer to STATUS */
  #told: string | undefined

  constructor(options: PluginOptions) {
    this.#options = options
    const { pods, waiting } = options
    this.#adding = new InProgressAdds({ known: (pod) => pods.known(pod), news: () => waiting.news() })
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
      log[request.command === 'STATUS' ? 'debug' : 'info'](
        { command: request.command, ...('sandbox' in request ? request.sandbox : {}), ms },
        'cni.done',
      )
      return { status: 0, output }
    } catch (thrown) {
      const isStatus = thrown instanceof CniError && thrown.number === CNI_CODES.notReady
      log[isStatus ? 'debug' : 'warn']({ error: thrown, call: line.slice(0, SHOWN) }, 'cni.failed')
      return { status: 1, output: errorAnswer(thrown, version) }
    }
  }

  /** Gives back what no sandbox has. */
  async collect(): Promise<void> {
    const { addresses, attachments, log } = this.#options
    const isGone = ({ containerId }: Holder): boolean =>
      this.#adding.of(containerId).length === 0 && attachments.ofSandbox(containerId) === undefined
    const count = (await addresses?.collect(isGone)) ?? 0
    if (count > 0) log.warn({ count }, 'ipam.leak-collected')
  }

  /** Takes away the veth and the address of a sandbox that is gone. */
  async remove(attachment: Attachment): Promise<void> {
    await this.#turn(attachment, () => this.#remove(attachment))
  }

  async #run(request: Request): Promise<string> {
    switch (request.command) {
      case 'ADD': {
        const { sandbox, config } = request
        const deadline = this.#options.clock.now() + config.timeoutMs
        using stack = new DisposableStack()
        stack.use(this.#adding.begin(sandbox))
        // waits before it takes the turn: other calls for the pod must not wait because the sources do not have it
        await this.#options.waiting.until(() => this.#unknown(sandbox), deadline)
        return await this.#turn(sandbox, () => this.#add(request, deadline))
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
      case 'STATUS':
        this.#status()
        return ''
    }
  }

  /** Runtimes ask every few seconds: an answer is logged only when it differs from the last one. */
  #status(): void {
    const reason = this.#options.of.notReady()
    const told = reason ?? 'ready'
    if (told !== this.#told) this.#options.log.info({ told }, 'cni.status')
    this.#told = told
    if (reason !== undefined) throw new CniError('notReady', reason)
  }

  async #add(request: Of<'ADD'>, deadline: number): Promise<string> {
    const { attachments, pods, waiting, netlink, of } = this.#options
    const { sandbox, config } = request
    const before = attachments.ofSandbox(sandbox.containerId)
    refuseOther(before, sandbox)
    const attachment = before === undefined ? await this.#first(request, deadline) : this.#again(before, request)
    try {
      attachments.save(attachment)
      if (attachment.ours && (before === undefined || hasChanged(netlink, attachment))) {
        removeVeth(netlink, attachment.host)
        createVeth(netlink, attachment)
      }
      pods.attach(refOf(attachment), attachedBy(attachment))
      const place = this.#placeOf(attachment)
      await waiting.until(() => {
        // a DEL of it waits for this ADD
        this.#known(sandbox)
        return of.missingOf(place)
      }, deadline)
      if (request.previous !== undefined) return request.previous.text
      raiseVeth(netlink, attachment)
      await waiting.poll(() => {
        this.#adding.refuseUnwanted(sandbox)
        return missingOfVeth(netlink, attachment)
      }, deadline)
      return addResult(attachment, config.cniVersion)
    } catch (thrown) {
      if (before === undefined) await this.#remove(attachment).catch((more: unknown) => this.#sayLeft(attachment, more))
      throw thrown
    }
  }

  /** A new one, with addresses; what another sandbox of this pod had goes first. */
  async #first(request: Of<'ADD'>, deadline: number): Promise<Attachment> {
    const { attachments } = this.#options
    const { sandbox, previous } = request
    const ref = refOf(sandbox)
    if (this.#known(sandbox).hostNetwork) throw new CniError('config', `Pod ${nameKey(ref)}: is in the host's network`)
    const former = attachments.ofPod(ref)
    if (former !== undefined) await this.#remove(former)
    return previous === undefined ? await this.#own(request, deadline) : this.#plugged(sandbox, previous)
  }

  /** The attachment that the sandbox has already. Another plugin may have made a new veth for it. */
  #again(before: Attachment, { sandbox, previous }: Of<'ADD'>): Attachment {
    return before.ours || previous === undefined ? { ...before, netns: sandbox.netns } : this.#plugged(sandbox, previous)
  }

  #plugged(sandbox: PodSandbox, { addresses }: PreviousResult): Attachment {
    if (addresses.length === 0) throw new CniError('config', `prevResult.ips: has no address of ${sandbox.ifname}`)
    return { ...sandbox, host: nodeEndOf(this.#options.netlink, sandbox), mtu: 0, addresses, delegate: undefined, ours: false }
  }

  async #own({ sandbox, config, environment }: Of<'ADD'>, deadline: number): Promise<Attachment> {
    const { of, addresses: from, waiting, clock } = this.#options
    if (from === undefined) throw new CniError('config', "prevResult: is missing: this node's pods are plugged in by another plugin")
    // no caller waits after the deadline, either
    const isWanted = (): boolean => clock.now() < deadline && this.#adding.isWanted(sandbox)
    const work = from.assign({ sandbox, pod: this.#known(sandbox), config, path: environment.path, isWanted })
    // addresses of another plugin are not garbage-collected
    if (config.ipam !== undefined) this.#adding.keep(sandbox, work)
    const missing = (): string => {
      this.#known(sandbox)
      return 'its address is not written down yet'
    }
    // what comes in the moment after has no sandbox, and is collected
    const { addresses, delegate } = await waiting.forWork(work, missing, deadline)
    const host = workloadInterface(refOf(sandbox), of.interfacePrefix)
    return { ...sandbox, host, mtu: config.mtu ?? of.mtu(addresses), addresses, delegate, ours: true }
  }

  async #del({ sandbox, config, environment }: Of<'DEL'>): Promise<void> {
    const { attachments, addresses } = this.#options
    // the runtime has given up an ADD that is still running: that ADD waits for nothing more, and this DEL waits for it
    const adding = this.#adding.of(sandbox.containerId).filter(({ ifname }) => ifname === sandbox.ifname)
    this.#adding.giveUp(adding, `${sandbox.containerId} is deleted already`)
    const known = attachments.ofSandbox(sandbox.containerId) ?? adding[0]
    if (known === undefined) {
      // another plugin may have given addresses to one that never came to be
      await addresses?.releaseUnknown({ sandbox, config, environment })
    } else {
      await this.#turn(known, async () => {
        const attachment = attachments.ofSandbox(sandbox.containerId)
        if (attachment?.ifname === sandbox.ifname) await this.#remove(attachment, { path: environment.path })
      })
    }
    // an agent that is killed now gives nothing back: the caller must ask again
    if (this.#adding.isBusy(sandbox.containerId)) throw new CniError('tryAgain', 'another plugin is still giving it addresses')
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
      of.missingOf(this.#placeOf(attachment))
    if (reason !== undefined) throw new CniError('differs', reason)
  }

  async #gc({ valid, environment }: Of<'GC'>): Promise<void> {
    const keep = new Set(valid.map(({ containerId, ifname }) => `${containerId} ${ifname}`))
    const { attachments, of } = this.#options
    const gone = attachments.all().filter(({ containerId, ifname }) => !keep.has(`${containerId} ${ifname}`))
    const failed: unknown[] = []
    const { clock, waiting } = this.#options
    const until = clock.now() + GIVE_BACK_MS
    for (const attachment of gone) {
      // another plugin may take long for each, and the caller asks again
      if (attachment.delegate !== undefined && clock.now() >= until)
        failed.push(new CniError('tryAgain', 'not all addresses of another plugin are given back yet'))
      else
        await this.#turn(attachment, () => this.#remove(attachment, { path: environment.path, until })).catch((thrown: unknown) =>
          failed.push(thrown),
        )
    }
    // before the sync every address would look unused; garbage collection runs once a minute anyway
    if (of.synced) await waiting.inTime(this.collect(), 'addresses are still being collected', clock.now() + GIVE_BACK_MS)
    // one that cannot be taken away holds up no other
    if (failed.length > 0) throw failed[0]
  }

  /** Order: veth, attachment file, address. A crash in between leaves only an address without a sandbox, which garbage
   * collection finds. Only the other plugin can find its own addresses, so they are released before the attachment
   * file is removed. `path`: the caller's CNI_PATH; `until`: when the caller stops waiting. */
  async #remove(attachment: Attachment, { path = '', until }: { readonly path?: string; readonly until?: number } = {}): Promise<void> {
    const { attachments, netlink, pods, addresses, clock } = this.#options
    // one that took its place may have the name by now
    if (attachments.ofPod(refOf(attachment))?.containerId === attachment.containerId) {
      if (attachment.ours) removeOwnVeth(netlink, attachment)
      pods.attach(refOf(attachment), undefined)
    }
    await addresses?.releaseDelegated(attachment, path)
    attachments.forget(attachment)
    if (attachment.ours && addresses !== undefined) await this.#giveBack(attachment, addresses, until ?? clock.now() + GIVE_BACK_MS)
  }

  /** Or later: what has no sandbox is collected, and no runtime has to ask again for that. */
  async #giveBack(attachment: Attachment, addresses: PodAddresses, deadline: number): Promise<void> {
    const { clock, waiting, log } = this.#options
    const done = addresses.releaseOwn(attachment, () => clock.now() < deadline)
    await waiting.inTime(done, 'its address is not given back yet', deadline).catch((error: unknown) => {
      log.warn({ containerId: attachment.containerId, error }, 'ipam.given-back-later')
    })
  }

  /** Throws CniError when the veth is gone. */
  #placeOf({ host, addresses }: Attachment): PodPlace {
    const index = vethOf(this.#options.netlink, host)?.index
    if (index === undefined) throw new CniError('io', `${host} is gone`)
    return { iface: host, index, addresses }
  }

  /** Throws CniError when no source has it any more, or its runtime wants it no more. */
  #known(sandbox: PodSandbox): Pod {
    this.#adding.refuseUnwanted(sandbox)
    const pod = this.#podOf(sandbox)
    if (pod === undefined) throw new CniError('tryAgain', `Pod ${nameKey(refOf(sandbox))} is gone`)
    return pod
  }

  #unknown(sandbox: PodSandbox): string | undefined {
    const { of, pods, node } = this.#options
    this.#adding.refuseUnwanted(sandbox)
    if (!of.synced) return 'the sources are not read yet'
    if (this.#podOf(sandbox) !== undefined) return of.announced ? undefined : 'other nodes have not heard of this one'
    const other = pods.known(refOf(sandbox))
    const which = other === undefined ? '' : ` with the uid ${sandbox.uid ?? ''}, which the runtime says, but with ${other.uid ?? ''}`
    return `no source has Pod ${nameKey(refOf(sandbox))} on node ${node}${which}`
  }

  /** Another pod of the same name has other labels and wishes, perhaps: what we know may be old, or the call. */
  #podOf(sandbox: PodSandbox): Pod | undefined {
    const pod = this.#options.pods.known(refOf(sandbox))
    return pod?.uid === undefined || sandbox.uid === undefined || pod.uid === sandbox.uid ? pod : undefined
  }

  #sayLeft(attachment: Attachment, error: unknown): void {
    // its DEL takes it away, or the garbage collection once a minute
    this.#options.log.warn({ containerId: attachment.containerId, reason: errorText(error), error }, 'cni.left-behind')
  }

  async #turn<T>(sandbox: PodSandbox, work: () => Promise<T>): Promise<T> {
    const key = nameKey(refOf(sandbox))
    const turns = this.#turns.get(key) ?? new Semaphore(1)
    this.#turns.set(key, turns)
    try {
      return await turns.run(work)
    } finally {
      if (turns.idle) this.#turns.delete(key)
    }
  }
}

const SHOWN = 500
const GIVE_BACK_MS = 5000
