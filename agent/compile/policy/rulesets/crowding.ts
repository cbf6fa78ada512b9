// SPDX-License-Identifier: Apache-2.0
/** When namespaces that are closed for their rows of identities are worth another look. Layer: agent/compile (pure).
 *
 * To look is to make all identities again, which costs seconds where they are many. So nobody looks before so much is
 * gone that there can be room: of each endpoint, and of each identity, as many rows as one identity had at the most. */

/** Without those of the namespaces that are closed. */
export interface RowsNow {
  readonly identities: number
  readonly rows: number
}

export class Crowding {
  /** endpoints that went, or have other labels, since the namespaces were closed */
  gone = 0
  #before: RowsNow = { identities: 0, rows: 0 }
  /** rows without which the namespace that was closed last would have stayed open */
  #over = 0
  #mostOfOne = 0

  /** One namespace more is closed. `mostOfOne`: rows of the identity with most, while it was open. */
  note(over: number, mostOfOne: number): void {
    this.#over = over
    this.#mostOfOne = mostOfOne
  }

  /** All of them are. */
  begin(now: RowsNow): void {
    this.#before = now
    this.gone = 0
  }

  mayBeOver({ identities, rows }: RowsNow): boolean {
    const fewer = this.gone + Math.max(0, this.#before.identities - identities)
    return fewer * this.#mostOfOne + Math.max(0, this.#before.rows - rows) >= this.#over
  }
}
