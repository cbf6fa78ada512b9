// SPDX-License-Identifier: Apache-2.0
/** Splits a batch of an EventReader into its records. Layer: test. */

export function splitRecords(batch: Buffer): Buffer[] {
  const records: Buffer[] = []
  for (let at = 0; at < batch.length;) {
    const length = batch.readUInt32LE(at)
    records.push(batch.subarray(at + 4, at + 4 + length))
    at += Math.ceil((4 + length) / 8) * 8
  }
  return records
}
