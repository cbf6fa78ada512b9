// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readEvent, readList, readObject } from '#lib/api/envelopes.ts'
import { messageFor } from '#lib/api/messages.ts'
import { ProtobufError } from '#lib/api/protobuf.ts'
import { encode, enveloped, prefixed } from '../../../bench/control/encode.ts'

const SLICE = messageFor({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' }) ?? []
const SERVICE = messageFor({ apiVersion: 'v1', kind: 'Service' }) ?? []

describe('an answer', () => {
  test('of any bytes is read or refused', () => {
    const sample = enveloped('EndpointSliceList', prefixed(2, encode(SLICE, { endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'n' }] })))
    const change = fc.tuple(fc.nat(sample.length - 1), fc.integer({ min: 0, max: 255 }))
    const mutated = fc.array(change, { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(sample)
      for (const [at, byte] of changes) bytes[at] = byte
      return bytes
    })
    const read = (bytes: Buffer): void => {
      for (const item of (readList(bytes, SLICE)['items'] ?? []) as Iterable<unknown>) expect(item).toBeTypeOf('object')
      readObject(bytes, SERVICE)
      readEvent(bytes, SERVICE)
    }
    fc.assert(
      fc.property(
        fc.oneof(
          mutated,
          fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
        ),
        (bytes) => {
          try {
            read(bytes)
          } catch (thrown) {
            if (!(thrown instanceof ProtobufError)) throw thrown
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})
