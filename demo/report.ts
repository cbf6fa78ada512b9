// SPDX-License-Identifier: Apache-2.0
/** Prints the story on a terminal and counts what held. Layer: demo. */
import { table } from '#lib/base/table.ts'

/** One thing that was checked, with what was seen. */
export interface Row {
  readonly cells: readonly string[]
  readonly ok: boolean
}

/** What a chapter tells, piece by piece. */
export type Piece =
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly Row[] }
  | { readonly kind: 'evidence'; readonly title: string; readonly lines: readonly string[] }

export interface ReportOptions {
  readonly write: (text: string) => void
  readonly color: boolean
}

export class Report {
  readonly #options: ReportOptions
  #chapters = 0
  #passed = 0
  #failed = 0

  constructor(options: ReportOptions) {
    this.#options = options
  }

  get failed(): number {
    return this.#failed
  }

  /** Something is being done that takes a while. */
  progress(text: string): void {
    this.#line(this.#paint(`.. ${text}`, 2))
  }

  chapter(title: string): void {
    this.#line('')
    this.#line(this.#paint(`${++this.#chapters}. ${title}`, 1))
  }

  piece(piece: Piece): void {
    if (piece.kind === 'evidence') {
      this.#line(`   ${piece.title}`)
      for (const line of piece.lines) this.#line(this.#paint(`     ${line}`, 2))
      return
    }
    const lines = table([['', ...piece.head], ...piece.rows.map((row) => [row.ok ? 'ok' : 'FAILED', ...row.cells])]).split('\n')
    this.#line(`   ${lines[0] ?? ''}`)
    for (const [at, row] of piece.rows.entries()) {
      this.#line(this.#paint(`   ${lines[at + 1] ?? ''}`, row.ok ? 32 : 31))
      if (row.ok) this.#passed++
      else this.#failed++
    }
  }

  /** A chapter that could not run to its end: one failure, however many lines say why. */
  failure(text: string): void {
    this.#failed++
    for (const [at, line] of text.split('\n').entries()) this.#line(this.#paint(`   ${at === 0 ? 'FAILED' : '      '}  ${line}`, 31))
  }

  /** The last line. */
  end(): void {
    this.#line('')
    this.#line(`demo: ${this.#passed} passed, ${this.#failed} failed`)
  }

  #line(text: string): void {
    this.#options.write(`${text}\n`)
  }

  #paint(text: string, code: number): string {
    return this.#options.color ? `\u001b[${code}m${text}\u001b[0m` : text
  }
}
