// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readEvent, readList, readObject } from '#lib/api/decode/envelopes.ts'
import { messageFor } from '#lib/api/decode/messages.ts'
import { ProtobufError } from '#lib/api/decode/protobuf.ts'
import { encode, enveloped, prefixed } from '../../../../bench/control/encode.ts'

const SLICE = messageFor({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' }) ?? []

describe('an answer', () => {
  test('of any bytes is read or refused', () => {
    const slice = encode(SLICE, { endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'n' }] })
    const object = enveloped('EndpointSlice', slice)
    const readers: readonly (readonly [Buffer, (bytes: Buffer) => void])[] = [
      [
        enveloped('EndpointSliceList', prefixed(2, slice)),
        (bytes) => {
          for (const item of (readList(bytes, SLICE)['items'] ?? []) as Iterable<unknown>) expect(item).toBeTypeOf('object')
        },
      ],
      [object, (bytes) => readObject(bytes, SLICE)],
      [Buffer.concat([prefixed(1, Buffer.from('ADDED')), prefixed(2, prefixed(1, object))]), (bytes) => readEvent(bytes, SLICE)],
    ]
    for (const [sample, read] of readers) {
      read(sample)
      const change = fc.tuple(fc.nat(sample.length - 1), fc.integer({ min: 0, max: 255 }))
      const mutated = fc.array(change, { maxLength: 6 }).map((changes) => {
        const bytes = Buffer.from(sample)
        for (const [at, byte] of changes) bytes[at] = byte
        return bytes
      })
      const any = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
      const isSafe = (bytes: Buffer): void => {
        try {
          read(bytes)
        } catch (thrown) {
          if (!(thrown instanceof ProtobufError)) throw thrown
        }
      }
      fc.assert(fc.property(fc.oneof(mutated, any), isSafe), { numRuns: 1500 })
    }
  })
})
