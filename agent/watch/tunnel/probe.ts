// SPDX-License-Identifier: Apache-2.0
/** Whether the tunnel's packets arrive between this node and others, while it may be used. Layer: agent.
 *
 * A node sends a few packets every ten seconds to each peer, and hears theirs. They tell the peer what of its own was
 * not heard: so both nodes know of a loss in one direction. */
import { sha256Start } from '#lib/base/hash.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import type { Addr, Port } from '#lib/base/ip.ts'
import { firstFew } from '#lib/base/text/first-few.ts'
import type { Node } from '#lib/model/node.ts'
import { ConditionReporter } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { hear } from './judge.ts'
import { hintOf, lossesOf, lossText, toTell, type Known, type Loss } from './losses.ts'
import { peersOf, type Peer } from './peers.ts'
import { decodeProbe, encodeProbe, KINDS } from './probe-packet.ts'

/** Condition: what the tunnel carries arrives, from the peers of this node and at them. The agent is ready even while
 * it fails. */
export const TUNNEL_ARRIVES = 'network.tunnel'

const TICK_MS = 1000
const ROUND_MS = 10_000
const JITTER = 0.2
/** Of this node, in a row, in which nothing was heard of a peer. */
const SILENT_ROUNDS = 4
/** In a row, in which a silent peer says that it asks: one that was away has asked by the second. */
const ANSWERS = 2
const BARRED: ReadonlySet<string | undefined> = new Set(['EPERM', 'EADDRNOTAVAIL'])
/** As programs choose them (tunnel_source_port in bpf/include/l3/encap.h). */
const FIRST_SOURCE_PORT = 0xc000

/** The node's kernel, for packets of probes. */
export interface TunnelWire {
  /** Throws the addon's errors. */
  listen(port: Port, family: Peer['family']): Tap
  /** Throws the addon's errors: there may be no way to the address. */
  open(source: Addr, address: Addr): OpenPath
}

export interface Tap extends Disposable {
  /** all that came since it was asked last, from the IP header on */
  packets(): Iterable<Buffer>
}

export interface OpenPath extends Disposable {
  readonly mtu: number
  /** From the UDP header on. Throws the kernel's errors. */
  send(packet: Buffer): void
}

/** How packets of the tunnel leave. */
export interface TunnelWay {
  readonly port: Port
  readonly hasChecksums: boolean
}

export interface TunnelProbeOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  readonly wire: TunnelWire
  readonly node: string
  /** undefined: there is no tunnel, or not yet */
  readonly way: () => TunnelWay | undefined
  readonly nodes: () => ReadonlyMap<string, Node>
  /** whether the peer's agent runs, and asks as this one does */
  readonly asksToo: (peer: Peer) => Promise<boolean>
  /** this node's does */
  readonly onAsking: (asks: boolean) => void
  /** from 0 to 1 */
  readonly random: () => number
}

interface Path extends Known {
  readonly peer: Peer
  /** rounds of this node */
  readonly unheard: number
  /** to the question of the last rounds */
  readonly answers: number
}

const NEW: Omit<Path, 'peer'> = { heard: undefined, unheard: 1, answers: 0, isSilent: false }

interface Reported {
  readonly loss: Loss
  /** ms of the wall clock */
  readonly since: number
  readonly hint: string
}

export class TunnelProbe {
  readonly #options: TunnelProbeOptions
  readonly #losses: ConditionReporter<Reported>
  readonly #run: string
  #way: TunnelWay | undefined
  #taps: readonly Tap[] = []
  /** of the last round: kernels learn of narrow paths while they are open */
  #open: readonly OpenPath[] = []
  #paths: ReadonlyMap<string, Path> = new Map()
  #round = 0
  #roundAt = 0
  /** this node itself lets nothing leave: its firewall, or an address that it has not; so the network loses nothing */
  #isBarred = false
  #failed: string | undefined

  constructor(options: TunnelProbeOptions) {
    const { health, log, random, clock, node } = options
    this.#options = options
    this.#run = sha256Start(`${node} ${clock.wall()} ${random()}`)
    health.expect(TUNNEL_ARRIVES, 'none')
    this.#losses = new ConditionReporter<Reported>({
      ...{ health, condition: TUNNEL_ARRIVES },
      reason: (all) => firstFew([...all.values()].map(({ loss, since, hint }) => `${lossText(loss)} since ${stamp(since)}: ${hint}`)),
      isSame: (before, now) => deepEqual(before.loss, now.loss),
      found: (_, { loss, hint }) => log.warn({ ...loss, hint }, 'tunnel.loss'),
      gone: (_, { loss }) => log.info({ ...loss }, 'tunnel.loss-over'),
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
    } finally {
      this.#stop()
    }
  }

  async tick(): Promise<void> {
    const { clock, way, random } = this.#options
    this.#closeOpen()
    if (!this.#begin(way()) || !this.#listen()) return
    if (clock.now() >= this.#roundAt) {
      this.#roundAt = clock.now() + ROUND_MS * (1 + JITTER * (random() - 0.5))
      await this.#askAll()
    }
    this.#report()
  }

  /** False: there is nothing to ask. */
  #begin(way: TunnelWay | undefined): boolean {
    if (way?.port !== this.#way?.port) this.#stop()
    this.#way = way
    if (way === undefined) {
      this.#losses.note(new Map())
      return false
    }
    if (this.#taps.length > 0) return true
    try {
      for (const family of ['IPv4', 'IPv6'] as const) this.#taps = [...this.#taps, this.#options.wire.listen(way.port, family)]
      return true
    } catch (thrown) {
      this.#fail(thrown)
      this.#stop()
      return false
    }
  }

  /** False: it cannot, and begins anew. */
  #listen(): boolean {
    try {
      for (const tap of this.#taps) for (const packet of tap.packets()) this.#take(packet)
      return true
    } catch (thrown) {
      this.#fail(thrown)
      this.#stop()
      return false
    }
  }

  #stop(): void {
    this.#closeOpen()
    for (const tap of this.#taps) tap[Symbol.dispose]()
    this.#taps = []
    this.#paths = new Map()
    this.#round = 0
    this.#options.onAsking(false)
  }

  #closeOpen(): void {
    for (const path of this.#open) path[Symbol.dispose]()
    this.#open = []
  }

  #take(packet: Buffer): void {
    const received = decodeProbe(packet)
    if (received?.probe.to !== sha256Start(this.#options.node)) return
    const { probe, source } = received
    for (const [key, path] of this.#paths) {
      if (path.peer.address !== source || sha256Start(path.peer.name) !== probe.from) continue
      this.#set(key, { ...path, heard: hear(path.heard, probe), unheard: 0, answers: 0, isSilent: false })
    }
  }

  #set(key: string, path: Path): void {
    this.#paths = new Map([...this.#paths, [key, path]])
  }

  async #askAll(): Promise<void> {
    const { node, nodes, onAsking } = this.#options
    const paths = peersOf(node, nodes()).map((peer): Path => {
      const before = this.#paths.get(keyOf(peer))
      const isKnown = before !== undefined && before.peer.address === peer.address
      return isKnown ? { ...before, peer, unheard: before.unheard + 1 } : { ...NEW, peer }
    })
    this.#paths = new Map(await Promise.all(paths.map(async (path) => [keyOf(path.peer), await this.#judgeSilence(path)] as const)))
    this.#round++
    this.#isBarred = false
    this.#open = [...this.#paths.values()].flatMap((path) => this.#ask(path))
    onAsking(!this.#isBarred)
  }

  /** A peer that is down, or whose agent does not ask, says nothing of the network. */
  async #judgeSilence(path: Path): Promise<Path> {
    if (path.unheard <= SILENT_ROUNDS) return path
    const answers = (await this.#options.asksToo(path.peer)) ? path.answers + 1 : 0
    return { ...path, heard: undefined, answers, isSilent: answers >= ANSWERS }
  }

  #ask(path: Path): readonly OpenPath[] {
    const { wire, node, random } = this.#options
    const { name, source, address } = path.peer
    const way = this.#way
    if (way === undefined) return []
    try {
      const open = wire.open(source, address)
      const probe = {
        ...{ from: sha256Start(node), to: sha256Start(name), run: this.#run, round: this.#round, size: open.mtu },
        misses: toTell(path),
      }
      const ends = { ...way, source, address, sourcePort: FIRST_SOURCE_PORT + Math.floor(random() * 0x4000) }
      for (const kind of KINDS) this.#send(open, encodeProbe({ ...probe, kind }, ends))
      return [open]
    } catch (thrown) {
      this.#fail(thrown)
      return []
    }
  }

  /** What cannot be sent is no loss of the network: the peer hears no other kind either, or the path is narrower than
   * it was. */
  #send(open: OpenPath, packet: Buffer): void {
    try {
      open.send(packet)
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  #fail(thrown: unknown): void {
    const reason = errorText(thrown)
    this.#isBarred ||= BARRED.has(errorCode(thrown))
    if (reason !== this.#failed) this.#options.log.info({ error: thrown, reason }, 'tunnel.probe-failed')
    this.#failed = reason
  }

  #report(): void {
    const way = this.#way
    if (way === undefined) return
    const now = this.#options.clock.wall()
    const all = [...this.#paths.values()].flatMap((path) => lossesOf(path.peer, path))
    const reported = all.map((loss): [string, Reported] => {
      const key = `${loss.peer} ${loss.family} ${loss.lost}`
      return [key, { loss, since: this.#losses.all.get(key)?.since ?? now, hint: hintOf(loss.lost, way.port) }]
    })
    this.#losses.note(new Map(reported))
  }
}

function keyOf({ name, family }: Peer): string {
  return `${name} ${family}`
}

function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
