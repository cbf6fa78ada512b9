// SPDX-License-Identifier: Apache-2.0
/** A plugin whose veths, addresses and data plane are in memory, and whose sandboxes are on a real disk.
 * Layer: test. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NotYetError } from '#lib/base/errors.ts'
import { formatAddr, parseAddr, type Addr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { Notifier } from '#lib/base/async/wait.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import { silentLog, type Log, type LogFields } from '#lib/obs/log.ts'
import { Store } from '#lib/store/store.ts'
import type { Sink } from '#lib/store/source.ts'
import { AttachmentFiles, type Attachment } from '#agent/cni/attachments.ts'
import { CniError } from '#agent/cni/cni-error.ts'
import { ChainedNetworking } from '#agent/cni/networking/chained-networking.ts'
import { OwnNetworking, type RaisedVeth, type VethMaker } from '#agent/cni/networking/own-networking.ts'
import type { PodVeth } from '#agent/cni/networking/pod-veth.ts'
import { Plugin } from '#agent/cni/plugin.ts'
import { NO_ADDRESSES, type AddressCall, type Addresses, type AddressSource } from '#agent/cni/pod-addresses.ts'
import type { Sandbox as CniSandbox } from '#agent/cni/request.ts'
import { nodeSink } from '#agent/run/node-sink.ts'
import { PodOverlaySink } from '#agent/cni/pod-overlay-sink.ts'
import { model, pod, type PodSpec } from '../../../support/build.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

/** What happened, in its order. */
type Journal = string[]

/** Devices by name of the node's end. */
export class MemoryVeths implements VethMaker {
  readonly devices = new Map<string, Pick<PodVeth, 'containerId' | 'netns' | 'mtu'> & { readonly index: number; up: boolean }>()
  readonly changed = new Notifier()
  /** what a veth that is raised still lacks */
  lacks: string | undefined
  /** what {@link whatDiffers} finds */
  differs: string | undefined
  /** namespaces that cannot be entered */
  readonly gone = new Set<string>()
  /** raised, and not let go of */
  watched = 0
  readonly #journal: Journal
  #index = 100

  constructor(journal: Journal) {
    this.#journal = journal
  }

  create({ host, containerId, netns, mtu }: PodVeth): void {
    if (this.gone.has(netns)) throw new Error(`${netns}: no such file`)
    this.#journal.push(`create ${containerId}`)
    this.devices.set(host, { index: this.#index++, containerId, netns, mtu, up: false })
  }

  raise({ host, containerId }: PodVeth): RaisedVeth {
    const device = this.devices.get(host)
    if (device === undefined) throw new Error(`raise ${host}: no such device`)
    this.#journal.push(`raise ${containerId}`)
    device.up = true
    this.watched++
    const dispose = (): void => {
      this.watched--
    }
    return { missing: () => this.lacks, changed: [this.changed], [Symbol.dispose]: dispose }
  }

  remove({ host, containerId }: Pick<PodVeth, 'host' | 'containerId'>): void {
    if (this.devices.get(host)?.containerId !== containerId) return
    this.#journal.push(`remove ${containerId}`)
    this.devices.delete(host)
  }

  whatDiffers({ host, netns }: PodVeth): string | undefined {
    if (this.gone.has(netns)) throw new Error(`${netns}: no such file`)
    return this.devices.has(host) ? this.differs : `${host} is gone`
  }
}

/** Gives 10.0.0.1, 10.0.0.2, … */
export class MemoryAddresses implements AddressSource {
  /** by container */
  readonly held = new Map<string, Addr>()
  /** nothing is given or taken before it resolves */
  gate: Promise<unknown> = Promise.resolve()
  /** thrown by {@link releaseDelegated} */
  stuck: Error | undefined
  /** thrown by {@link releaseOwn} and {@link collect} */
  locked: Error | undefined
  /** that each pod has beside its own */
  also: readonly Addr[] = []
  readonly #journal: Journal
  #last = 0

  constructor(journal: Journal) {
    this.#journal = journal
  }

  async assign({ sandbox: { containerId }, config, path, isWanted }: AddressCall): Promise<Addresses> {
    await this.gate
    if (!isWanted()) throw new NotYetError('not wanted any more')
    const addr = parseAddr(`10.0.0.${++this.#last}`)
    this.#journal.push(`assign ${containerId}`)
    this.held.set(containerId, addr)
    return {
      addresses: [addr, ...this.also],
      delegate: config.ipam === undefined ? undefined : { type: config.ipam, config: config.text, path },
    }
  }

  async releaseDelegated({ containerId, delegate }: Attachment, path: string): Promise<void> {
    if (delegate === undefined) return
    await this.gate
    if (this.stuck !== undefined) throw this.stuck
    this.#journal.push(`release by ${delegate.type} in ${path}: ${containerId}`)
    this.held.delete(containerId)
  }

  async releaseUnknown({ sandbox }: Parameters<AddressSource['releaseUnknown']>[0]): Promise<void> {
    await Promise.resolve(this.#journal.push(`release unknown ${sandbox.containerId}`))
  }

  async releaseOwn({ containerId, delegate }: Attachment): Promise<void> {
    await this.gate
    if (delegate !== undefined) return
    if (this.locked !== undefined) throw this.locked
    if (!this.held.delete(containerId)) return
    this.#journal.push(`release ${containerId}`)
  }

  async collect(isGone: (holder: Holder) => boolean): Promise<number> {
    await this.gate
    if (this.locked !== undefined) throw this.locked
    const gone = [...this.held.keys()].filter((containerId) => isGone({ namespace: 'default', pod: 'any', containerId }))
    for (const one of gone) this.held.delete(one)
    return gone.length
  }

  async collectDelegated({ config }: Parameters<AddressSource['collectDelegated']>[0], valid: readonly CniSandbox[]): Promise<void> {
    if (config.ipam === undefined) return
    if (this.stuck !== undefined) throw this.stuck
    await Promise.resolve(this.#journal.push(`collect by ${config.ipam}, but ${valid.map(({ containerId }) => containerId).join(' ')}`))
  }

  async statusDelegated({ config }: Parameters<AddressSource['statusDelegated']>[0]): Promise<void> {
    if (config.ipam !== undefined && this.stuck !== undefined) throw this.stuck
    await Promise.resolve()
  }

  async checkDelegated({ delegate, containerId }: Attachment): Promise<void> {
    if (delegate === undefined) return
    if (this.stuck !== undefined) throw this.stuck
    await Promise.resolve(this.#journal.push(`check by ${delegate.type}: ${containerId}`))
  }
}

export interface Sandbox {
  readonly pod: string
  /** "<pod>-1" when not given */
  readonly id?: string
  readonly ifname?: string
  readonly uid?: string
}

type Fields = Readonly<Record<string, unknown>>

export interface Outcome {
  readonly status: number
  readonly output: Fields
}

export class PluginWorld implements Disposable {
  readonly clock = new FakeClock()
  readonly journal: Journal = []
  readonly veths = new MemoryVeths(this.journal)
  readonly addresses = new MemoryAddresses(this.journal)
  /** other plugins' veths, by the pod's namespace */
  readonly otherVeths = new Map<string, string>()
  /** changed by {@link change} */
  readonly node = {
    ...{ synced: true, announced: true },
    ...{ locked: undefined as string | undefined, missing: undefined as string | undefined, notReady: undefined as string | undefined },
  }
  readonly store = new Store({ sources: ['s'] })
  readonly pods = new PodOverlaySink('n1', this.store.sink('s'))
  readonly events: (LogFields & { readonly event: string })[] = []
  readonly stop = new AbortController()
  readonly plugin: Plugin
  readonly #changed = new Notifier()
  readonly #source: Sink
  readonly #folder = mkdtempSync(join(tmpdir(), 'netplane-plugin-'))

  constructor({ chained = false }: { readonly chained?: boolean } = {}) {
    this.#source = nodeSink({ sink: this.store.sink('s'), pods: this.pods, beforeSynced: () => undefined })
    this.#source.synced()
    this.plugin = this.#plugin(chained)
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true })
  }

  /** The next agent's, on the same node. */
  next(how: { readonly chained: boolean } = { chained: false }): Plugin {
    const plugin = this.#plugin(how.chained)
    plugin.start()
    return plugin
  }

  putPod(name: string, of: PodSpec = {}): void {
    this.#source.apply([{ kind: 'upsert', object: model(pod(name, { node: 'n1', ...of })) }])
  }

  deletePod(name: string): void {
    this.#source.apply([{ kind: 'delete', ref: { kind: 'Pod', namespace: 'default', name } }])
  }

  change(now: Partial<PluginWorld['node']>): void {
    Object.assign(this.node, now)
    this.#changed.notify()
  }

  async add(sandbox: Sandbox, config: Fields = {}): Promise<Outcome> {
    return await this.call('ADD', sandbox, config)
  }

  async call(command: string, sandbox: Sandbox, config: Fields = {}): Promise<Outcome> {
    return await callOf(this.plugin, lineOf(command, sandbox, config))
  }

  /** Another agent. */
  async ask(plugin: Plugin, command: string, { config = {}, ...sandbox }: Sandbox & { readonly config?: Fields }): Promise<Outcome> {
    return await callOf(plugin, lineOf(command, sandbox, config))
  }

  /** Of a sandbox's file half is lost. */
  damage(name: string): void {
    writeFileSync(join(this.#folder, name), '{')
  }

  /** Names of the files of sandboxes. */
  saved(): readonly string[] {
    return readdirSync(this.#folder).sort()
  }

  /** The addresses by which the store knows the pod. */
  known(name: string): readonly string[] {
    return (this.store.snapshot.pods.get(`default/${name}`)?.podIPs ?? []).map(formatAddr)
  }

  /** Everything that is left of any sandbox. */
  left(): Fields {
    return {
      saved: this.saved(),
      devices: [...this.veths.devices.keys()],
      held: [...this.addresses.held.keys()],
      watched: this.veths.watched,
    }
  }

  logged(event: string): readonly LogFields[] {
    return this.events.filter((one) => one.event === event)
  }

  #plugin(chained: boolean): Plugin {
    const { clock, veths, pods, node } = this
    const addresses = chained ? NO_ADDRESSES : this.addresses
    const log = this.#log()
    return new Plugin({
      name: 'n1',
      node: {
        get synced() {
          return node.synced
        },
        get announced() {
          return node.announced
        },
        get locked() {
          return node.locked
        },
        changed: this.#changed,
        indexOf: (iface) => veths.devices.get(iface)?.index ?? ([...this.otherVeths.values()].includes(iface) ? 7 : undefined),
        missingOf: () => node.missing,
        notReady: () => node.notReady,
      },
      attachments: new AttachmentFiles(this.#folder),
      pods,
      own: new OwnNetworking({ addresses, veths, interfacePrefix: () => 'npl', mtu: () => 1450, clock, log }),
      chained: new ChainedNetworking({ nodeEndOf: (one) => this.#nodeEndOf(one) }),
      addresses,
      clock,
      log,
      stop: this.stop.signal,
    })
  }

  #nodeEndOf({ netns, ifname }: { readonly netns: string; readonly ifname: string }): string {
    const host = this.otherVeths.get(netns)
    if (host === undefined) throw new CniError('config', `there is no ${ifname} in ${netns}`)
    return host
  }

  #log(): Log {
    const note = (fields: LogFields, event: string): void => {
      this.events.push({ ...fields, event })
    }
    return { ...silentLog, info: note, warn: note, error: note }
  }
}

/** What the shim sends. */
function lineOf(command: string, { pod: name, id = `${name}-1`, ifname = 'eth0', uid }: Sandbox, config: Fields): string {
  const args = `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}${uid === undefined ? '' : `;K8S_POD_UID=${uid}`}`
  const text = JSON.stringify({ cniVersion: '1.0.0', name: 'netplane', ...config })
  return JSON.stringify({ command, containerId: id, netns: `/run/netns/${id}`, ifname, args, path: '/opt/cni/bin', config: text })
}

async function callOf(plugin: Plugin, line: string): Promise<Outcome> {
  const { status, output } = await plugin.call(line)
  const parsed: unknown = output === '' ? {} : JSON.parse(output)
  return { status, output: isObject(parsed) ? parsed : {} }
}

export function hostOf(name: string): string {
  return workloadInterface({ namespace: 'default', name })
}

/** "11: why" */
export function refusalOf({ output }: Outcome): string {
  return `${String(output['code'])}: ${String(output['msg'])}`
}

/** Whatever can go on without time passing has. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}
