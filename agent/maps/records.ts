// SPDX-License-Identifier: Apache-2.0
/** Batches of an EventReader, split into the records that programs wrote. Layer: agent/maps (pure). */
import { LITTLE_ENDIAN } from './view.ts'

/** Views of the batch. Those of perf buffers may be up to 7 bytes longer than what was written. */
export function recordsOf(batch: Buffer): Buffer[] {
  const records: Buffer[] = []
  for (let at = 0; at < batch.length;) {
    const length = LITTLE_ENDIAN ? batch.readUInt32LE(at) : batch.readUInt32BE(at)
    records.push(batch.subarray(at + 4, at + 4 + length))
    at += Math.ceil((4 + length) / 8) * 8
  }
  return records
}
