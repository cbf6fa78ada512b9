// SPDX-License-Identifier: Apache-2.0
/** What the programs of a node tell of flows, whichever of them are at work. Layer: agent/flows. */
import { EventReader, type BpfMap } from '#native'
import { bind } from '../maps/codec.ts'
import { structLayout } from '../maps/layout.ts'
import type { Btf } from '../maps/btf.ts'
import { recordsOf } from '../maps/records.ts'
import { flowEvent, type FlowEvent } from '../maps/shapes.ts'
import { viewOf } from '../maps/view.ts'

/** Programs that are loaded together, with the maps that they write to. */
export interface Telling {
  /** differs for each */
  readonly id: string
  readonly btf: Btf
  readonly maps: readonly BpfMap[]
}

/** Programs before these may have had packets at hand when they were replaced. */
const LAST_WORDS_MS = 2000

interface Opened {
  readonly id: string
  readonly readers: readonly EventReader[]
}

/** Until it is disposed of. */
export class Events implements Disposable {
  readonly #take: (event: FlowEvent) => void
  #current: Opened | undefined
  /** with the time at which each is closed */
  #former: { readonly opened: Opened; readonly until: number }[] = []
  /** records that were lost by readers that are closed */
  #lost = 0

  constructor(take: (event: FlowEvent) => void) {
    this.#take = take
  }

  /** Reads what these tell from now on. Throws the addon's errors. */
  follow(telling: Telling | undefined, nowMs: number): void {
    if (telling?.id !== this.#current?.id) {
      if (this.#current !== undefined) this.#former.push({ opened: this.#current, until: nowMs + LAST_WORDS_MS })
      this.#current = undefined
      if (telling !== undefined) this.#current = { id: telling.id, readers: this.#open(telling) }
    }
    for (const { opened } of this.#former.filter(({ until }) => until <= nowMs)) this.#close(opened)
    this.#former = this.#former.filter(({ until }) => until > nowMs)
  }

  #open({ btf, maps }: Telling): readonly EventReader[] {
    const codec = bind(flowEvent, structLayout(btf, 'flow_event'))
    const readers: EventReader[] = []
    try {
      for (const map of maps)
        readers.push(
          EventReader.open(map, (batch) => {
            for (const record of recordsOf(batch)) this.#take(codec.decode(viewOf(record), 0))
          }),
        )
      return readers
    } catch (thrown) {
      for (const reader of readers) reader.close()
      throw thrown
    }
  }

  /** records that readers were too slow for: those of perf buffers, for programs count the others */
  get lost(): number {
    const open = [...(this.#current === undefined ? [] : [this.#current]), ...this.#former.map(({ opened }) => opened)]
    return open.flatMap(({ readers }) => readers).reduce((sum, reader) => sum + reader.lost(), this.#lost)
  }

  #close({ readers }: Opened): void {
    for (const reader of readers) {
      reader.close()
      this.#lost += reader.lost()
    }
  }

  [Symbol.dispose](): void {
    if (this.#current !== undefined) this.#close(this.#current)
    for (const { opened } of this.#former) this.#close(opened)
    this.#current = undefined
    this.#former = []
  }
}
