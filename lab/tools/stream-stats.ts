// SPDX-License-Identifier: Apache-2.0
/** Counts what became of numbered messages. Layer: lab (tool, pure). */
import type { Answer, StreamResult } from './results.ts'

export class StreamStats {
  readonly #stream: string
  /** number → when it was sent */
  readonly #open = new Map<number, number>()
  readonly #pods = new Map<string, number>()
  readonly #peers = new Set<string>()
  readonly #errors = new Map<string, number>()
  #sent = 0
  #received = 0
  #duplicates = 0
  #outOfOrder = 0
  #highest = -1
  #lastAnswer: number | undefined
  #longestGap = 0
  #longestGapAt: number | undefined
  #slowest = 0
  #connections = 0

  constructor(stream: string) {
    this.#stream = stream
  }

  get sent(): number {
    return this.#sent
  }

  get received(): number {
    return this.#received
  }

  /** messages without an answer so far */
  get open(): number {
    return this.#open.size
  }

  /** The number for the next message. Times are in ms of one clock. */
  send(now: number): number {
    this.#lastAnswer ??= now
    this.#open.set(this.#sent, now)
    return this.#sent++
  }

  answer(answer: Answer, now: number): void {
    const seq = answer.seq ?? -1
    const sentAt = this.#open.get(seq)
    if (sentAt === undefined) {
      this.#duplicates++
      return
    }
    this.#open.delete(seq)
    this.#received++
    this.#slowest = Math.max(this.#slowest, now - sentAt)
    if (seq < this.#highest) this.#outOfOrder++
    this.#highest = Math.max(this.#highest, seq)
    this.#pods.set(answer.pod, (this.#pods.get(answer.pod) ?? 0) + 1)
    this.#peers.add(answer.peer)
    this.silence(now)
    this.#lastAnswer = now
  }

  /** Says that the time until now has passed without an answer. */
  silence(now: number): void {
    const gap = now - (this.#lastAnswer ?? now)
    if (gap <= this.#longestGap) return
    this.#longestGap = gap
    this.#longestGapAt = this.#lastAnswer
  }

  connection(): void {
    this.#connections++
  }

  error(code: string): void {
    this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1)
  }

  /** `origin`: the clock's zero in ms since 1970 */
  result(origin = 0): StreamResult {
    const wall = (at: number | undefined): number | null => (at === undefined ? null : Math.round(origin + at))
    return {
      stream: this.#stream,
      sent: this.#sent,
      received: this.#received,
      lost: this.#open.size,
      duplicates: this.#duplicates,
      outOfOrder: this.#outOfOrder,
      reconnects: Math.max(0, this.#connections - 1),
      errors: Object.fromEntries(this.#errors),
      longestGapMs: Math.round(this.#longestGap),
      longestGapAt: wall(this.#longestGapAt),
      // messages are in the order in which they were sent
      firstLostAt: wall(this.#open.values().next().value),
      slowestMs: Math.round(this.#slowest),
      pods: Object.fromEntries(this.#pods),
      peers: [...this.#peers],
    }
  }
}
