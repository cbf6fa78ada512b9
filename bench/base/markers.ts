// SPDX-License-Identifier: Apache-2.0
/** Replaces what stands between two markers of a page. Layer: bench (pure). */
import { ParseError } from '#lib/base/errors.ts'

/** Between `<!-- NAME:begin -->` and `<!-- NAME:end -->`. Throws ParseError when the page does not have both, in
 * this order. */
export function between(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new ParseError('page with markers', name, `needs ${begin} and ${end}`)
  return `${page.slice(0, from + begin.length)}\n${text}${page.slice(to)}`
}
