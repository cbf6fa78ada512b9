// SPDX-License-Identifier: Apache-2.0
/** Keeps the clients of a server from keeping each other out: an address has a share of the connections and a rate, and
 * who has said nothing gives way first. Layer: lib/base. */
import type { Socket } from 'node:net'
import { systemClock, type Clock } from '../clock.ts'
import { Pace } from '../time/pace.ts'

export interface GuardLimits {
  /** connections of all together */
  readonly most: number
  /** connections of one address. Clients on this machine have one address, and all of them: the kubelet is one. */
  readonly perPeer: number
  /** connections a second of one address; twice as many at once, and none of this machine is refused for it */
  readonly perSecond: number
  /** a client says within so many ms what it wants */
  readonly sayMs: number
}

/** What a guard has to know of a connection. */
export type Client = Pick<Socket, 'remoteAddress' | 'destroyed' | 'destroy' | 'resetAndDestroy' | 'on' | 'once'>

export interface Guest<C extends Client = Socket> {
  readonly socket: C
  /** It has said what it wants: it stays until it is idle or closed. */
  readonly busy: () => void
  /** It has to say what it wants within so many ms, and gives way until then. */
  readonly idle: (ms: number) => void
}

/** Above its rate a client waits for so long; beyond that it is cut off. One of this machine does not wait then. */
const MOST_WAIT_MS = 1000

interface Peer<C extends Client> {
  readonly address: string
  count: number
  /** the oldest first */
  readonly idle: Set<Guest<C>>
}

/** Several servers may have one: then the limits hold for all of them together. */
export class Guard<C extends Client = Socket> {
  readonly #limits: GuardLimits
  readonly #clock: Pick<Clock, 'now' | 'after'>
  readonly #pace: Pace
  readonly #peers = new Map<string, Peer<C>>()
  /** the oldest first */
  readonly #idle = new Set<Guest<C>>()
  /** for their turn, the oldest first */
  readonly #waiting = new Set<Guest<C>>()
  readonly #leave = new Map<Guest<C>, () => void>()

  constructor(limits: GuardLimits, clock: Pick<Clock, 'now' | 'after'> = systemClock) {
    this.#limits = limits
    this.#clock = clock
    this.#pace = new Pace({ perSecond: limits.perSecond, burst: 2 * limits.perSecond })
  }

  /** connections that are there */
  get size(): number {
    return this.#leave.size
  }

  /** Calls `serve` when it is the client's turn, or cuts it off. */
  admit(socket: C, serve: (guest: Guest<C>) => void): void {
    socket.on('error', () => socket.destroy())
    const address = socket.remoteAddress ?? ''
    const wait = this.#pace.take(address, this.#clock.now(), MOST_WAIT_MS) ?? (isLocal(address) ? 0 : undefined)
    if (wait === undefined || !this.#makeRoom(address)) {
      cut(socket)
      return
    }
    const guest = this.#take(socket, address)
    const begin = (): void => {
      this.#waiting.delete(guest)
      guest.idle(this.#limits.sayMs)
      serve(guest)
    }
    if (wait === 0) begin()
    else {
      this.#waiting.add(guest)
      socket.once('close', this.#clock.after(wait, begin))
    }
  }

  #makeRoom(address: string): boolean {
    const { most, perPeer } = this.#limits
    const peer = this.#peers.get(address)
    const share = isLocal(address) ? most : perPeer
    if (peer !== undefined && peer.count >= share && !this.#giveWay(peer.idle)) return false
    return this.size < most || this.#giveWay(this.#idle) || this.#giveWay(this.#waiting)
  }

  /** False when there is none. */
  #giveWay(guests: ReadonlySet<Guest<C>>): boolean {
    const [oldest] = guests
    if (oldest === undefined) return false
    // its close is told later
    this.#leave.get(oldest)?.()
    cut(oldest.socket)
    return true
  }

  #take(socket: C, address: string): Guest<C> {
    const peer = this.#peers.get(address) ?? { address, count: 0, idle: new Set() }
    this.#peers.set(address, peer)
    peer.count++
    let stop = (): void => undefined
    const busy = (): void => {
      stop()
      this.#idle.delete(guest)
      peer.idle.delete(guest)
    }
    const idle = (ms: number): void => {
      busy()
      if (!this.#leave.has(guest)) return
      this.#idle.add(guest)
      peer.idle.add(guest)
      stop = this.#clock.after(ms, () => cut(socket))
    }
    const guest: Guest<C> = { socket, busy, idle }
    const leave = (): void => {
      busy()
      this.#waiting.delete(guest)
      if (!this.#leave.delete(guest)) return
      if (--peer.count === 0) this.#peers.delete(address)
    }
    this.#leave.set(guest, leave)
    socket.once('close', leave)
    return guest
  }
}

/** A client that does not read must not leave what it was sent in the kernel. */
function cut(socket: Client): void {
  if (socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

/** Also of a socket of the file system, which has no address. */
function isLocal(address: string): boolean {
  return address === '' || address === '::1' || address.replace('::ffff:', '').startsWith('127.')
}
