// SPDX-License-Identifier: Apache-2.0
/** The answer of a watch in Protocol Buffers: parts with their lengths in front, as many as have come at a time.
 * Layer: lib/api. */
import { UnreachableError, UnreadableError } from '../errors.ts'

/** Of a length: big-endian. */
const LENGTH_BYTES = 4
/** No object is as large. */
const MOST_BYTES = 64 << 20

/** Throws UnreachableError for a part that is cut off, UnreadableError for one longer than any object. */
export async function* frames(body: AsyncIterable<Buffer>): AsyncGenerator<readonly Buffer[]> {
  /** what has come of a part that is not whole yet */
  let open: Buffer[] = []
  let have = 0
  let need = LENGTH_BYTES
  for await (const chunk of body) {
    open.push(chunk)
    have += chunk.length
    if (have < need) continue
    const bytes = open.length === 1 ? chunk : Buffer.concat(open)
    const whole: Buffer[] = []
    let at = 0
    need = LENGTH_BYTES
    while (bytes.length - at >= LENGTH_BYTES) {
      const length = bytes.readUInt32BE(at)
      if (length > MOST_BYTES) throw new UnreadableError(`an event of the watch claims ${length} bytes`)
      need = LENGTH_BYTES + length
      if (bytes.length - at < need) break
      whole.push(bytes.subarray(at + LENGTH_BYTES, at + need))
      at += need
      need = LENGTH_BYTES
    }
    open = at === bytes.length ? [] : [bytes.subarray(at)]
    have = bytes.length - at
    if (whole.length > 0) yield whole
  }
  if (have > 0) throw new UnreachableError('the watch ended in the middle of an event')
}
