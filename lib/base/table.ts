// SPDX-License-Identifier: Apache-2.0
/** Tables for terminals. Layer: lib/base (pure). */

type Cells = readonly string[]

/** Columns as wide as their widest cell, two spaces apart; the first row is the heading. */
export function table(rows: readonly Cells[]): string {
  return growingTable()(rows)
}

/** A table that comes in parts: columns are never narrower than in the parts before. */
export function growingTable(): (rows: readonly Cells[]) => string {
  const widths: number[] = []
  return (rows) => {
    for (const row of rows) for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
    return rows.map((row) => lineOf(row, widths)).join('\n')
  }
}

function lineOf(row: Cells, widths: readonly number[]): string {
  return row
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd()
}
