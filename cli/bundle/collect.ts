// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle read one after the other: each may fail, hang or be too long, and the others come all the same.
 * Layer: cli. */
import { errorText } from '#lib/base/errors.ts'
import type { Clock } from '#lib/base/clock.ts'
import { withoutSecrets } from './secrets.ts'

export interface Part {
  /** "net/links.json" */
  readonly name: string
  /** what it is, for the index */
  readonly about: string
  /** throws with the reason why there is nothing */
  readonly read: () => Promise<string> | string
  /** secrets were left out field by field: as text it would lose its form */
  readonly isClean?: true
}

export type Collected = Pick<Part, 'name' | 'about'> & { readonly text: string; readonly remark: string }

export interface Bounds {
  readonly partMs: number
  readonly wholeMs: number
  readonly partBytes: number
}

/** Of files that only grow the end is wanted, of all others the beginning. */
const ENDS = /^log\//

/** The remark of a part that has been read and has nothing, as the log of a quiet container. */
const EMPTY = 'empty'

export function isMissing({ text, remark }: Collected): boolean {
  return text === '' && remark !== EMPTY
}

/** In the order of the parts; one without text has the reason in its remark. */
export async function collect(parts: readonly Part[], bounds: Bounds, clock: Pick<Clock, 'now' | 'after'>): Promise<Collected[]> {
  const end = clock.now() + bounds.wholeMs
  const collected: Collected[] = []
  for (const part of parts) {
    const { name, about, isClean } = part
    const left = Math.min(bounds.partMs, end - clock.now())
    const read = left <= 0 ? { text: '', remark: 'not read: there was no time left' } : await attempt(part, left, clock)
    const { text, remark } = cut(isClean === true ? read.text : withoutSecrets(read.text), { name, most: bounds.partBytes })
    collected.push({ name, about, text, remark: [read.remark, remark].filter((one) => one !== '').join('; ') })
  }
  return collected
}

async function attempt(
  { read }: Part,
  ms: number,
  clock: Pick<Clock, 'after'>,
): Promise<{ readonly text: string; readonly remark: string }> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () => {
    reject(new Error(`not within ${Math.round(ms)} ms`))
  })
  try {
    const text = await Promise.race([Promise.resolve().then(read), late])
    return { text, remark: text === '' ? EMPTY : '' }
  } catch (thrown) {
    return { text: '', remark: `not read: ${withoutSecrets(errorText(thrown))}` }
  } finally {
    cancel()
  }
}

function cut(
  text: string,
  { name, most }: { readonly name: string; readonly most: number },
): { readonly text: string; readonly remark: string } {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return { text, remark: '' }
  const isEnd = ENDS.test(name)
  const kept = isEnd ? bytes.subarray(bytes.length - most) : bytes.subarray(0, most)
  return { text: kept.toString(), remark: `${isEnd ? 'the last' : 'the first'} ${most} of ${bytes.length} bytes` }
}
