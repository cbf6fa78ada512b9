// SPDX-License-Identifier: Apache-2.0
/** What is summed up of one key while its window is open. Layer: agent/flows (pure). */
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import type { EndDetails, FlowCounts, FlowKey, FlowWindow } from '#lib/flows/flow.ts'
import type { KnownEnd } from './ends.ts'

/** So many addresses, pods and ports of each end are told. */
const FEW = 8

/** Packets and bytes. */
export interface Amount {
  readonly packets: number
  readonly bytes: number
}

/** The two ends of connections, as they are noted. */
export interface RowEnds {
  readonly source: KnownEnd
  readonly sourceAddr: Addr
  readonly dest: KnownEnd
  readonly destAddr: Addr
  /** the protocol has such */
  readonly hasPorts: boolean
}

type Sums = { -readonly [K in keyof FlowCounts]: FlowCounts[K] }

export class Row {
  readonly key: FlowKey
  /** connections of it that are there now */
  active = 0
  #sums: Sums
  #source = new EndNotes()
  #dest = new EndNotes()
  #sourcePorts = new Set<number>()
  #noted = false
  #told = false
  #changed = false

  /** `sums`: what an agent before has summed up in this window */
  constructor(key: FlowKey, sums?: FlowCounts) {
    this.key = key
    this.#sums = sums === undefined ? noSums(0) : { ...sums }
  }

  get sums(): FlowCounts {
    return this.#sums
  }

  /** A connection that these sums know already; `active`: it has not ended. */
  rejoin(ends: RowEnds, sourcePort: number, active: boolean): void {
    if (active) this.active++
    this.note(ends, sourcePort)
  }

  /** Something happened in this window of which nothing has been told yet. */
  get isNews(): boolean {
    return this.#changed && !this.#told && !this.isEmpty
  }

  /** A connection is here: it began just now, or was there before. */
  enter(ends: RowEnds, sourcePort: number, began: boolean): void {
    this.active++
    this.#sums.live++
    if (began) this.#sums.started++
    this.note(ends, sourcePort)
  }

  /** It is another row's from now on; `undone`: it always was. */
  leave(undone: boolean): void {
    this.active--
    if (!undone) return
    this.#sums.live--
    this.#sums.started--
  }

  /** Nothing was told of it in this window, and there is nothing to tell. */
  get isEmpty(): boolean {
    return !this.#told && Object.values(this.#sums).every((sum) => sum === 0)
  }

  complete(): void {
    this.active--
    this.#sums.completed++
    this.#changed = true
  }

  /** `forward`: what the opening end has sent since. */
  add(forward: Amount, back: Amount): void {
    const [into, out] = this.key.reporter === 'Dst' ? [forward, back] : [back, forward]
    this.#sums.packetsIn += into.packets
    this.#sums.bytesIn += into.bytes
    this.#sums.packetsOut += out.packets
    this.#sums.bytesOut += out.bytes
    this.#changed = true
  }

  /** In a new window, what was noted of the one before is forgotten. */
  note({ source, sourceAddr, dest, destAddr, hasPorts }: RowEnds, sourcePort: number): void {
    if (!this.#noted) {
      this.#noted = true
      this.#source = new EndNotes()
      this.#dest = new EndNotes()
      this.#sourcePorts = new Set()
    }
    this.#source.note(source, sourceAddr)
    this.#dest.note(dest, destAddr)
    if (hasPorts && this.#sourcePorts.size < FEW) this.#sourcePorts.add(sourcePort)
    this.#changed = true
  }

  /** As it stands; it is told by that. */
  tell(start: number): FlowWindow {
    this.#told = true
    return {
      key: this.key,
      start,
      counts: { ...this.#sums },
      source: this.#source.details(),
      dest: this.#dest.details(),
      sourcePorts: [...this.#sourcePorts].sort((a, b) => a - b),
    }
  }

  /** Another window begins; false: there is nothing more to tell. */
  turn(): boolean {
    this.#sums = noSums(this.active)
    this.#noted = false
    this.#told = false
    this.#changed = false
    return this.active > 0
  }
}

function noSums(live: number): Sums {
  return { packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0, started: 0, completed: 0, live }
}

/** What all that was merged into one end has in common, and the first few of what tells them apart. */
class EndNotes {
  #labels: readonly string[] | undefined
  /** whose labels were intersected last: most of a window are one pod's */
  #last: KnownEnd | undefined
  readonly #addresses = new Set<Addr>()
  readonly #pods = new Set<string>()
  readonly #nodes = new Set<string>()
  readonly #owners = new Set<string>()

  note(end: KnownEnd, addr: Addr): void {
    addFew(this.#addresses, addr)
    if (end === this.#last) return
    this.#last = end
    const has = new Set(end.labels)
    this.#labels = this.#labels?.filter((label) => has.has(label)) ?? end.labels
    if (end.pod !== '') addFew(this.#pods, end.pod)
    addFew(this.#nodes, end.node)
    addFew(this.#owners, end.owner)
  }

  details(): EndDetails {
    return {
      labels: this.#labels ?? [],
      addresses: [...this.#addresses].sort().map(formatAddr),
      pods: [...this.#pods].sort(),
      node: only(this.#nodes),
      owner: only(this.#owners),
    }
  }
}

function addFew<T>(to: Set<T>, one: T): void {
  if (to.size < FEW) to.add(one)
}

/** Empty where they differ. */
function only(all: ReadonlySet<string>): string {
  const [first = '', ...others] = all
  return others.length === 0 ? first : ''
}
