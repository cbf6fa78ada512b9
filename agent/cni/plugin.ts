// SPDX-License-Identifier: Apache-2.0
/** The verbs of CNI, as far as both modes share them. What is given away is on disk before it is used, and used before
 * it is answered. Layer: agent/cni. */
import type { Clock } from '#lib/base/clock.ts'
import { DatastoreLockedError, errorText, NotYetError } from '#lib/base/errors.ts'
import { formatAddr } from '#lib/base/ip.ts'
import { KeyedMutex } from '#lib/base/async/semaphore.ts'
import { waitUntil, withinLimits, type WaitLimits } from '#lib/base/async/wait.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import type { Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Log } from '#lib/obs/log.ts'
import { attachedBy, refOf, refuseOther, type Attachment, type AttachmentFiles } from './attachments.ts'
import { CNI_CODES, CniError, errorAnswer } from './cni-error.ts'
import { InProgressAdds } from './in-progress-adds.ts'
import type { AddCall, PodNetworking } from './networking/pod-networking.ts'
import type { AddressSource } from './pod-addresses.ts'
import type { PodNode, PodPlace } from './pod-node.ts'
import type { PodOverlaySink } from './pod-overlay-sink.ts'
import { parseRequest, versionOf, type Request, type RequestOf } from './request.ts'
import { SandboxPods } from './sandbox-pods.ts'

export interface PluginOptions {
  /** this node's name */
  readonly name: string
  readonly node: PodNode
  readonly attachments: AttachmentFiles
  readonly pods: PodOverlaySink
  /** for sandboxes that no plugin before us in the list has plugged in */
  readonly own: PodNetworking
  /** for those that one has */
  readonly chained: PodNetworking
  /** also of sandboxes of which nothing is known */
  readonly addresses: Pick<AddressSource, 'releaseUnknown' | 'collect' | `${'collect' | 'check' | 'status'}Delegated`>
  readonly clock: Clock
  readonly log: Log
  /** aborts when the agent stops, with the answer for calls that wait */
  readonly stop: AbortSignal
}

export interface Answer {
  /** exit status of the shim */
  readonly status: 0 | 1
  readonly output: string
}

export class Plugin {
  readonly #options: PluginOptions
  readonly #pods: SandboxPods
  /** by pod: two calls for one pod wait for each other */
  readonly #turns = new KeyedMutex()
  readonly #adding: InProgressAdds
  /** the last answer to STATUS */
  #told: string | undefined

  constructor(options: PluginOptions) {
    this.#options = options
    const { pods, stop } = options
    this.#pods = new SandboxPods(options)
    this.#adding = new InProgressAdds({ known: (pod) => pods.known(pod), stop })
  }

  /** What an agent before has left is in force again. */
  start(): void {
    const { attachments, pods, log } = this.#options
    for (const problem of attachments.load()) log.error({ problem }, 'cni.attachment-rejected')
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

  /** Gives back what no sandbox has; of what the datastore has, once it is not locked. */
  async collect(): Promise<void> {
    const { addresses, attachments, log } = this.#options
    const isGone = ({ containerId }: Holder): boolean => this.#adding.of(containerId).length === 0 && !attachments.has(containerId)
    try {
      const count = await addresses.collect(isGone)
      if (count > 0) log.warn({ count }, 'ipam.leaks-collected')
    } catch (thrown) {
      if (!(thrown instanceof DatastoreLockedError)) throw thrown
    }
  }

  /** Takes away the veth and the address of a sandbox that is gone. */
  async remove(attachment: Attachment): Promise<void> {
    await this.#turn(attachment, () => this.#remove(attachment))
  }

  async #run(request: Request): Promise<string> {
    switch (request.command) {
      case 'ADD':
        return await this.#add(request)
      case 'DEL':
        await this.#del(request)
        return ''
      case 'CHECK':
        await this.#check(request)
        return ''
      case 'GC':
        await this.#gc(request)
        return ''
      case 'STATUS':
        await this.#status(request)
        return ''
    }
  }

  /** Runtimes ask every few seconds: an answer is logged only when it differs from the last one. */
  async #status(request: RequestOf<'STATUS'>): Promise<void> {
    const { addresses, node } = this.#options
    const delegated = (): Promise<string | undefined> => addresses.statusDelegated(request).then(() => undefined, errorText)
    const reason = node.notReady() ?? (await delegated())
    const told = reason ?? 'ready'
    if (told !== this.#told) this.#options.log.info({ told }, 'cni.status-changed')
    this.#told = told
    if (reason !== undefined) throw new CniError('notReady', reason)
  }

  async #add(request: RequestOf<'ADD'>): Promise<string> {
    const { clock } = this.#options
    const { sandbox, config } = request
    const deadline = clock.now() + config.timeoutMs
    using stack = new DisposableStack()
    const add = stack.use(this.#adding.begin(sandbox))
    const limits = { clock, deadline, signal: add.signal }
    // before it takes the turn: other calls for the pod must not wait because the sources do not have it
    await this.#pods.wait(sandbox, limits)
    // its runtime deletes it then, and that DEL waits for this ADD
    stack.use(
      this.#pods.whenGone(sandbox, (reason) => {
        add.giveUp(reason)
      }),
    )
    return await this.#turn(sandbox, () => this.#attach({ request, add, limits }))
  }

  async #attach({ request, add, limits }: Omit<AddCall, 'pod'>): Promise<string> {
    const { attachments, pods, node } = this.#options
    const { sandbox } = request
    add.signal.throwIfAborted()
    const pod = this.#pods.get(sandbox)
    const before = attachments.ofSandbox(sandbox.containerId)
    refuseOther(before, sandbox)
    if (before === undefined) await this.#makeWay(pod)
    const networking = this.#networkingOf({ ours: before?.ours ?? request.previous === undefined })
    const call = { request, add, limits, pod }
    const attachment = await networking.plan(call, before)
    try {
      attachments.save(attachment)
      networking.create(attachment, before)
      pods.attach(refOf(attachment), attachedBy(attachment))
      const place = this.#placeOf(attachment)
      await waitUntil({ ...limits, missing: () => node.missingOf(place), wokenBy: [node.changed] })
      return await networking.activate(attachment, call)
    } catch (thrown) {
      if (before === undefined) await this.#remove(attachment).catch((more: unknown) => this.#sayLeft(attachment, more))
      throw thrown
    }
  }

  /** For the pod's new sandbox: what another one of it had goes first. */
  async #makeWay(pod: Pod): Promise<void> {
    if (pod.hostNetwork) throw new CniError('config', `Pod ${nameKey(pod)}: is in the host's network`)
    const former = this.#options.attachments.ofPod(pod)
    if (former !== undefined) await this.#remove(former)
  }

  async #del({ sandbox, config, environment }: RequestOf<'DEL'>): Promise<void> {
    const { attachments, addresses } = this.#options
    // the runtime has given up an ADD that is still running: that ADD waits for nothing more, and this DEL waits for it
    const adding = this.#adding.of(sandbox.containerId).filter((one) => one.sandbox.ifname === sandbox.ifname)
    for (const one of adding) one.giveUp(`${sandbox.containerId} is deleted already`)
    const known = attachments.ofSandbox(sandbox.containerId) ?? adding[0]?.sandbox
    if (known === undefined) {
      // another plugin may have given addresses to one that never came to be
      await addresses.releaseUnknown({ sandbox, config, environment })
      attachments.forgetUnreadable(sandbox.containerId)
    } else {
      await this.#turn(known, async () => {
        const attachment = attachments.ofSandbox(sandbox.containerId)
        if (attachment?.ifname === sandbox.ifname) await this.#remove(attachment, { path: environment.path })
      })
    }
    // an agent that is killed now gives nothing back: the caller must ask again
    if (this.#adding.isBusy(sandbox.containerId)) throw new CniError('tryAgain', 'another plugin is still giving it addresses')
  }

  async #check({ sandbox, addresses, ...request }: RequestOf<'CHECK'>): Promise<void> {
    const { attachments, addresses: source } = this.#options
    const attachment = attachments.ofSandbox(sandbox.containerId)
    if (attachment?.ifname !== sandbox.ifname)
      throw new CniError('unknownContainer', `there is no ${sandbox.ifname} of ${sandbox.containerId}`)
    const lost = addresses.find((addr) => !attachment.addresses.includes(addr))
    const reason =
      (lost && `${formatAddr(lost)} is not the pod's`) ??
      this.#networkingOf(attachment).whatDiffers({ ...attachment, netns: sandbox.netns }) ??
      (await this.#lackOf(attachment))
    if (reason !== undefined) throw new CniError('differs', reason)
    await source.checkDelegated(attachment, request)
  }

  /** What the kernel lacks of the pod; undefined: nothing. What was known of its rows is found out again when other
   * programs have been loaded: only what stays away is told. */
  async #lackOf(attachment: Attachment): Promise<string | undefined> {
    const { node, clock, stop } = this.#options
    const place = this.#placeOf(attachment)
    const missing = (): string | undefined => node.missingOf(place)
    const limits = { clock, deadline: clock.now() + CHECK_MS, signal: stop }
    try {
      await waitUntil({ ...limits, missing, wokenBy: [node.changed] })
    } catch (thrown) {
      if (!(thrown instanceof NotYetError)) throw thrown
    }
    return missing()
  }

  async #gc({ valid, ...request }: RequestOf<'GC'>): Promise<void> {
    const keep = new Set(valid.map(({ containerId, ifname }) => `${containerId} ${ifname}`))
    const { attachments, node, clock, addresses } = this.#options
    const { path } = request.environment
    const gone = attachments.all().filter(({ containerId, ifname }) => !keep.has(`${containerId} ${ifname}`))
    const failed: unknown[] = []
    const until = clock.now() + GIVE_BACK_MS
    for (const attachment of gone) {
      // another plugin may take long for each, and the caller asks again
      if (attachment.delegate !== undefined && clock.now() >= until)
        failed.push(new CniError('tryAgain', 'not all addresses of another plugin are given back yet'))
      else await this.#turn(attachment, () => this.#remove(attachment, { path, until })).catch((thrown: unknown) => failed.push(thrown))
    }
    // what no file here says any more: a runtime that has lost its state lists none of it
    const left = attachments.all().filter(({ containerId, ifname }) => !keep.has(`${containerId} ${ifname}`))
    const stays = [...valid, ...this.#adding.sandboxes, ...left]
    await addresses.collectDelegated(request, stays).catch((thrown: unknown) => failed.push(thrown))
    const ids = new Set(valid.map(({ containerId }) => containerId))
    for (const id of attachments.unreadable()) if (!ids.has(id)) attachments.forgetUnreadable(id)
    // before the sync every address would look unused; garbage collection runs once a minute anyway
    if (node.synced) await withinLimits(this.collect(), 'addresses are still being collected', this.#givingBack())
    // one that cannot be taken away holds up no other
    if (failed.length > 0) throw failed[0]
  }

  /** Order: veth, attachment file, address. A crash in between leaves only an address without a sandbox, which garbage
   * collection finds. Only the other plugin can find its own addresses, so they are released before the attachment
   * file is removed. `path`: the caller's CNI_PATH; `until`: when the caller stops waiting. */
  async #remove(attachment: Attachment, { path = '', until }: { readonly path?: string; readonly until?: number } = {}): Promise<void> {
    const { attachments, pods } = this.#options
    const networking = this.#networkingOf(attachment)
    // one that took its place may have the name by now
    if (attachments.ofPod(refOf(attachment))?.containerId === attachment.containerId) {
      networking.removeDevices(attachment)
      pods.attach(refOf(attachment), undefined)
    }
    await networking.releaseDelegated(attachment, path)
    attachments.forget(attachment)
    await networking.releaseOwn(attachment, until ?? this.#givingBack().deadline)
  }

  #givingBack(): WaitLimits {
    const { clock } = this.#options
    return { clock, deadline: clock.now() + GIVE_BACK_MS }
  }

  /** A sandbox stays in the mode in which it was first added. */
  #networkingOf({ ours }: Pick<Attachment, 'ours'>): PodNetworking {
    return ours ? this.#options.own : this.#options.chained
  }

  /** Throws CniError when the veth is gone. */
  #placeOf({ host, addresses }: Attachment): PodPlace {
    const index = this.#options.node.indexOf(host)
    if (index === undefined) throw new CniError('io', `${host} is gone`)
    return { iface: host, index, addresses }
  }

  #sayLeft(attachment: Attachment, error: unknown): void {
    // its DEL takes it away, or the garbage collection once a minute
    this.#options.log.warn({ containerId: attachment.containerId, reason: errorText(error), error }, 'cni.delete-failed')
  }

  async #turn<T>(pod: Parameters<typeof refOf>[0], work: () => Promise<T>): Promise<T> {
    return await this.#turns.run(nameKey(refOf(pod)), work)
  }
}

const SHOWN = 500
const GIVE_BACK_MS = 5000
/** Rows of a pod are found again within this time when other programs have been loaded. */
const CHECK_MS = 2000
