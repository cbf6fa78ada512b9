// SPDX-License-Identifier: Apache-2.0
/** The flows that this node's programs tell of, summed up by windows of time. Layer: agent/flows (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { flowKeyText, WINDOW_SECONDS, type FlowCounts, type FlowKey, type FlowWindow, type Reporter } from '#lib/flows/flow.ts'
import { hasPorts } from '#lib/policy/packet.ts'
import type { CtTuple } from '../maps/flow-key.ts'
import type { FlowEvent } from '../maps/shapes.ts'
import { FlowKeys, type Fate, type KeyOptions, type KeyParts, type RuleNumbers, type Told } from './keys.ts'
import { Row, type Amount, type RowEnds } from './row.ts'

/** What a look at the flow table says of one flow. Of a translated one there are two, each with its direction. */
export interface SeenFlow extends RuleNumbers {
  readonly proto: number
  readonly lane: number
  readonly sent: CtTuple
  readonly flow: CtTuple
  readonly forward: Amount
  readonly back: Amount
  /** both ends of its TCP connection have closed it, or one has reset it */
  readonly closed: boolean
  /** programs take it for none */
  readonly expired: boolean
}

/** enum event_kind of bpf/include/types/event.h */
const [OPENED, DENIED, ENDED, DROPPED, MEANT] = [1, 2, 3, 4, 5]
const NOTHING: Amount = { packets: 0, bytes: 0 }
/** Rows by addresses and rules are found again without naming their ends: so many. */
const MEMO = 50_000

/** Small, for there may be a hundred thousand. */
interface Connection {
  place: Place
  readonly sport: number
  readonly lane: number
  /** number of the window in which it began; undefined: before it was told of */
  readonly began: number | undefined
  /** last seen of what each end has sent */
  forward: Amount
  back: Amount
  closed: boolean
  /** number of the look that saw it last */
  look: number
  /** found by a look: the event that tells of it may still come */
  found: boolean
}

/** What a book knows, as an agent leaves it to the next. */
export interface SavedBook {
  readonly start: number | undefined
  readonly rows: readonly { readonly key: FlowKey; readonly sums: FlowCounts }[]
  readonly connections: readonly (Pick<Connection, 'lane' | 'forward' | 'back' | 'closed'> & { readonly told: Told })[]
}

/** All connections between two addresses, to one port and by the same rules: the rows to which they add. */
interface Place {
  readonly rows: readonly Row[]
  readonly ends: RowEnds
  /** of one of them */
  readonly told: Told
}

export interface BookOptions extends KeyOptions {
  /** "no_route" */
  readonly reasonName: (number: number) => string
}

export class FlowBook {
  readonly #options: BookOptions
  readonly #keys: FlowKeys
  /** by text of the key */
  readonly #rows = new Map<string, Row>()
  readonly #places = new Map<string, Place>()
  readonly #connections = new Map<string, Connection>()
  /** what sockets have meant whose first packets have not been told yet, in this window and in the one before */
  #meant = new Map<string, CtTuple>()
  #meantBefore: ReadonlyMap<string, CtTuple> = new Map()
  /** seconds since 1970; undefined: no window is open */
  #start: number | undefined
  /** windows that are over: the number of the one that is open */
  #turns = 0
  /** number of the look at the flow table that is under way, or was last; 0: there has been none */
  #look = 0
  /** a look has been through the whole table: what another finds anew began since */
  #hasLooked = false

  constructor(options: BookOptions) {
    this.#options = options
    this.#keys = new FlowKeys(options)
  }

  /** The cluster, or the rules, are other than before. */
  forget(): void {
    this.#places.clear()
  }

  /** connections and keys that are kept */
  get size(): { readonly connections: number; readonly keys: number } {
    return { connections: this.#connections.size, keys: this.#rows.size }
  }

  /** What a program tells. */
  take(event: FlowEvent): void {
    switch (event.kind) {
      case OPENED:
        this.#open(event)
        break
      case ENDED:
        this.#end(event)
        break
      case DENIED:
        this.#deny(event)
        break
      case DROPPED:
        this.#drop(event)
        break
      case MEANT:
        this.#mean(event)
    }
  }

  /** A socket says by itself which service it meant: its packets go to the backend at once. The event of its first
   * packet comes from another program, so before or after this. */
  #mean({ sent, ...event }: FlowEvent): void {
    const key = connectionKey(event)
    const known = this.#connections.get(key)
    if (known === undefined || known.closed) {
      if (this.#meant.size >= MEMO) this.#meant.clear()
      this.#meant.set(key, sent)
      return
    }
    // if it began in this window, it has never been in other rows
    const isNew = known.began === this.#turns
    this.#move(known, { ...known.place.told, sent }, { undone: isNew, began: isNew })
  }

  /** It is in other rows from now on. */
  #move(known: Connection, told: Told, { undone, began }: { readonly undone: boolean; readonly began: boolean }): void {
    for (const row of known.place.rows) row.leave(undone)
    known.place = this.#placeOf(told, {})
    for (const row of known.place.rows) row.enter(known.place.ends, known.sport, began)
  }

  #open(event: FlowEvent): void {
    const key = connectionKey(event)
    const known = this.#connections.get(key)
    if (known?.found === true && !known.closed) {
      known.found = false
      return
    }
    if (known !== undefined && !known.closed) close(known)
    const sent = this.#meant.get(key) ?? this.#meantBefore.get(key) ?? event.sent
    this.#meant.delete(key)
    this.#enter({ ...event, sent }, { lane: event.lane, began: true })
  }

  /** A connection begins to be one of ours; `began`: just now. Undefined: no end of it is. */
  #enter(told: Told, of: { readonly lane: number; readonly began: boolean }): Connection | undefined {
    const known = this.#connect(told, of)
    if (known === undefined) return undefined
    for (const row of known.place.rows) row.enter(known.place.ends, known.sport, of.began)
    return known
  }

  #connect(told: Told, { lane, began }: { readonly lane: number; readonly began: boolean }): Connection | undefined {
    const place = this.#placeOf(told, {})
    if (place.rows.length === 0) return undefined
    const connection: Connection = {
      ...{ place, lane, forward: NOTHING, back: NOTHING, closed: false, look: this.#look, found: false },
      sport: told.flow.sport,
      began: began ? this.#turns : undefined,
    }
    this.#connections.set(connectionKey({ ...told, lane }), connection)
    return connection
  }

  #end(event: FlowEvent): void {
    const known = this.#connections.get(connectionKey(event)) ?? this.#connections.get(connectionKey({ ...event, lane: 0 }))
    if (known !== undefined && !known.closed) close(known)
  }

  #deny(event: FlowEvent): void {
    this.#tell(event, { denied: event.ingress_rule === 0 ? 'egress' : 'ingress' })
  }

  #drop(event: FlowEvent): void {
    this.#tell(event, { reason: this.#options.reasonName(event.reason) })
  }

  /** A packet that came to nothing. Without a flow, its own ends are what is known. */
  #tell(event: FlowEvent, fate: Fate): void {
    const flow = event.flow.src === event.flow.dst && event.flow.sport === 0 ? event.sent : event.flow
    const { rows, ends } = this.#placeOf({ ...event, flow }, fate)
    for (const row of rows) {
      row.note(ends, flow.sport)
      row.add({ packets: 1, bytes: event.length }, NOTHING)
    }
  }

  /** A look at the whole flow table begins. */
  beginLook(): void {
    this.#look++
  }

  /** What it finds. What the first look finds was there before. */
  see(seen: SeenFlow): void {
    const key = connectionKey(seen)
    let known = this.#connections.get(key)
    if (known === undefined) {
      if (seen.expired || seen.closed) return
      known = this.#enter(seen, { lane: seen.lane, began: this.#hasLooked })
      if (known === undefined) return
      known.found = true
      // what it had before was told by then, or was not to be told
      if (!this.#hasLooked) [known.forward, known.back] = [seen.forward, seen.back]
    }
    if (!seen.expired && !seen.closed && !areSame(known.place.told, seen)) this.#rejudge(known, seen)
    this.#count(known, seen)
    if ((seen.closed || seen.expired) && !known.closed) close(known)
    if (!known.closed) known.look = this.#look
  }

  /** Rules have changed: from now on others let it be. */
  #rejudge(known: Connection, { egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule }: SeenFlow): void {
    const told = { ...known.place.told, egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule }
    this.#move(known, told, { undone: false, began: false })
  }

  #count(known: Connection, { forward, back }: SeenFlow): void {
    const [there, here] = [grown(known.forward, forward), grown(known.back, back)]
    if (there === NOTHING && here === NOTHING) return
    const { rows, ends } = known.place
    for (const row of rows) {
      row.note(ends, known.sport)
      row.add(there, here)
    }
    if (there !== NOTHING) known.forward = forward
    if (here !== NOTHING) known.back = back
  }

  /** The look is over: what was there before it began, and was not found, is gone. */
  endLook(): void {
    this.#hasLooked = true
    for (const [key, known] of this.#connections) {
      if (known.look === this.#look) continue
      if (!known.closed) close(known)
      this.#connections.delete(key)
    }
  }

  /** What is new in this window of keys of which nothing was told in it. */
  news(nowSeconds: number): readonly FlowWindow[] {
    const start = this.#startOf(nowSeconds)
    return [...this.#rows.values()].filter(({ isNews }) => isNews).map((row) => row.tell(start))
  }

  /** The window that is open should be no more. */
  isOver(nowSeconds: number): boolean {
    return nowSeconds >= this.#startOf(nowSeconds) + WINDOW_SECONDS
  }

  /** All of the window that is over, and another begins; undefined: it is not over. */
  turn(nowSeconds: number): readonly FlowWindow[] | undefined {
    const start = this.#startOf(nowSeconds)
    if (!this.isOver(nowSeconds)) return undefined
    const windows: FlowWindow[] = []
    for (const [key, row] of this.#rows) {
      if (!row.isEmpty) windows.push(row.tell(start))
      if (!row.turn()) this.#rows.delete(key)
    }
    this.#places.clear()
    this.#meantBefore = this.#meant
    this.#meant = new Map()
    this.#start = windowOf(nowSeconds)
    this.#turns++
    return windows
  }

  /** All that it knows, for the agent after this one. */
  save(): SavedBook {
    const rows = [...this.#rows.values()].map(({ key, sums }) => ({ key, sums }))
    const connections = [...this.#connections.values()].map(({ place, sport, lane, forward, back, closed }) => {
      const { told } = place
      return { told: { ...told, flow: { ...told.flow, sport } }, lane, forward, back, closed }
    })
    return { start: this.#start, rows, connections }
  }

  /** Goes on from there. Before anything else. */
  restore({ start, rows, connections }: SavedBook): void {
    this.#start = start
    for (const { key, sums } of rows) this.#rows.set(flowKeyText(key), new Row(key, sums))
    for (const { told, lane, ...state } of connections) {
      const known = this.#connect(told, { lane, began: false })
      if (known === undefined) continue
      for (const row of known.place.rows) row.rejoin(known.place.ends, known.sport, !state.closed)
      Object.assign(known, state)
    }
    this.#hasLooked = true
  }

  #startOf(nowSeconds: number): number {
    return (this.#start ??= windowOf(nowSeconds))
  }

  #placeOf(told: Told, fate: Fate): Place {
    const key = placeKey(told, fate)
    const known = this.#places.get(key)
    if (known !== undefined) return known
    if (this.#places.size >= MEMO) this.#places.clear()
    const { proto, sent, flow, egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule } = told
    const near = this.#options.ends.find(flow.dst, '')
    const source = this.#options.ends.find(flow.src, near.namespace)
    const dest = this.#options.ends.find(flow.dst, source.namespace)
    const place = {
      rows: this.#rowsOf(told, { source, dest, fate }),
      ends: { source, sourceAddr: flow.src, dest, destAddr: flow.dst, hasPorts: hasPorts(proto) },
      told: { proto, sent, flow, egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule },
    }
    this.#places.set(key, place)
    return place
  }

  #rowsOf(told: Told, of: KeyParts): readonly Row[] {
    const { denied, reason } = of.fate
    const [fromHere, toHere] = [of.source.here !== undefined, of.dest.here !== undefined]
    if (reason !== undefined) return fromHere ? [this.#row(told, of, 'Src')] : toHere ? [this.#row(told, of, 'Dst')] : []
    if (denied === 'egress') return [this.#row(told, of, 'Src')]
    return [
      // the source's rules have let it go
      ...(fromHere ? [this.#row(told, { ...of, fate: {} }, 'Src')] : []),
      ...(toHere || denied === 'ingress' ? [this.#row(told, of, 'Dst')] : []),
    ]
  }

  #row(told: Told, of: KeyParts, reporter: Reporter): Row {
    const key = this.#keys.keyOf(told, of, reporter)
    const text = flowKeyText(key)
    const known = this.#rows.get(text)
    if (known !== undefined) return known
    const row = new Row(key)
    this.#rows.set(text, row)
    return row
  }
}

function close(connection: Connection): void {
  connection.closed = true
  for (const row of connection.place.rows) row.complete()
}

/** What has come since; an entry that has less than before is another's, or was emptied. */
function grown(before: Amount, now: Amount): Amount {
  if (now.packets === 0 || (now.packets === before.packets && now.bytes === before.bytes)) return NOTHING
  if (now.bytes < before.bytes) return now
  // packets are counted in 32 bits
  return { packets: (now.packets - before.packets) >>> 0, bytes: now.bytes - before.bytes }
}

function connectionKey({ flow, proto, lane }: { readonly flow: CtTuple; readonly proto: number; readonly lane: number }): string {
  return flow.src + flow.dst + bytesOf(flow.sport) + bytesOf(flow.dport) + bytesOf(lane) + String.fromCharCode(proto)
}

/** Two, so that texts made of it stay as small as bytes. */
function bytesOf(word: number): string {
  return String.fromCharCode(word >> 8, word & 0xff)
}

function placeKey({ flow, sent, proto, ...rules }: Told, { denied, reason }: Fate): string {
  const addrs: readonly Addr[] = [flow.src, flow.dst, sent.dst]
  return `${addrs.join('')}${bytesOf(flow.dport)}${bytesOf(sent.dport)}${String.fromCharCode(proto)}${rulesText(rules)} ${denied ?? reason ?? ''}`
}

function areSame(a: RuleNumbers, b: RuleNumbers): boolean {
  return (
    a.egress_rule === b.egress_rule &&
    a.ingress_rule === b.ingress_rule &&
    a.staged_egress_rule === b.staged_egress_rule &&
    a.staged_ingress_rule === b.staged_ingress_rule
  )
}

function rulesText({ egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule }: RuleNumbers): string {
  return `${egress_rule},${ingress_rule},${staged_egress_rule},${staged_ingress_rule}`
}

function windowOf(seconds: number): number {
  return Math.floor(seconds / WINDOW_SECONDS) * WINDOW_SECONDS
}
