// SPDX-License-Identifier: Apache-2.0
/** Reads packets from a packet socket of the addon. Layer: agent/interfaces. */
import { readSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'

/** Readers look at the headers and at less than 120 bytes behind them. */
const PACKET_BYTES = 256

/** Yields every packet that waits, as a view of one buffer: it is valid until the next one. Throws the kernel's errors,
 * but for ENETDOWN, which says that a device went down. */
export function* packetsOf(tap: number): Generator<Buffer> {
  const buffer = Buffer.alloc(PACKET_BYTES)
  for (;;) {
    try {
      yield buffer.subarray(0, readSync(tap, buffer))
    } catch (thrown) {
      if (errorCode(thrown) === 'EAGAIN') return
      if (errorCode(thrown) !== 'ENETDOWN') throw thrown
    }
  }
}
