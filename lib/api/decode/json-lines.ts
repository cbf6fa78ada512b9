// SPDX-License-Identifier: Apache-2.0
/** The answer of a watch: one JSON value a line, as many as have come at a time. Layer: lib/api. */
import { setImmediate } from 'node:timers/promises'
import { UnreachableError, UnreadableError } from '../errors.ts'

const NEWLINE = 0x0a
/** A line as long takes some ms: others have a turn before more is done with it. */
const LONG_BYTES = 100_000

/** Throws UnreadableError for a line that is no JSON, UnreachableError where one has no end. */
export async function* jsonLines(body: AsyncIterable<Buffer>): AsyncGenerator<readonly unknown[]> {
  /** the start of a line whose end has not come */
  let open: Buffer[] = []
  for await (const chunk of body) {
    const values: unknown[] = []
    let start = 0
    let isLong = false
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end)
      const line = open.length === 0 ? part : Buffer.concat([...open, part])
      isLong ||= line.length > LONG_BYTES
      values.push(valueOf(line))
      open = []
      start = end + 1
    }
    if (start < chunk.length) open.push(chunk.subarray(start))
    if (isLong) await setImmediate()
    if (values.length > 0) yield values
  }
  if (open.length > 0) throw new UnreachableError('the watch ended in the middle of an event')
}

function valueOf(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString())
  } catch (thrown) {
    throw new UnreadableError('an event of the watch is no JSON', thrown)
  }
}
