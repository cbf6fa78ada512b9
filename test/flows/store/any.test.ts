// SPDX-License-Identifier: Apache-2.0
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { receivedUpdate } from '#lib/flows/wire/codec.ts'
import { FlowUpdateSchema } from '#lib/flows/wire/goldmane_pb.ts'
import { NO_FILTER } from '#flows/filter/filter.ts'
import { listFlows } from '#flows/query/list.ts'
import { EVER } from '#flows/query/range.ts'
import { T0, TestStore } from '../made.ts'

const RUNS = Number(process.env['RUNS'] ?? '2000')

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '-', '\0', "'", 'é', '\u{10ffff}', 'x'.repeat(5000)))
const number = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constantFrom(0n, 1n, -1n, 2n ** 53n, 2n ** 63n - 1n))
const port = fc.oneof({ weight: 1, arbitrary: number }, { weight: 9, arbitrary: fc.constant(80n) })
const small = fc.integer({ min: -3, max: 14 })
const texts = fc.array(text, { maxLength: 3 })
const hit = fc.record({ kind: small, namespace: text, name: text, tier: text, action: small, policyIndex: number, ruleIndex: number })

/** Messages that are well formed, with anything in them. */
const message = fc
  .record({
    Key: fc.record({
      sourceName: text,
      sourceNamespace: text,
      sourceType: small,
      destName: text,
      destNamespace: text,
      destType: small,
      destPort: port,
      destServiceName: text,
      destServiceNamespace: text,
      destServicePortName: text,
      destServicePort: port,
      proto: text,
      reporter: fc.constantFrom(1, 2, 3),
      action: fc.constantFrom(1, 2, 0),
      policies: fc.record({ enforcedPolicies: fc.array(hit, { maxLength: 3 }), pendingPolicies: fc.array(hit, { maxLength: 3 }) }),
      dropReason: text,
    }),
    startTime: fc.oneof(
      { weight: 1, arbitrary: number },
      { weight: 4, arbitrary: fc.constantFrom(BigInt(T0), BigInt(T0 - 600), BigInt(T0 - 7)) },
    ),
    sourceLabels: texts,
    destLabels: texts,
    packetsIn: number,
    bytesOut: number,
    numConnectionsStarted: number,
    numConnectionsLive: number,
    node: text,
    sequence: number,
    sourceIps: texts,
    destPods: texts,
    sourceOwner: text,
    sourcePorts: fc.array(number, { maxLength: 3 }),
  })
  .map((flow) => toBinary(FlowUpdateSchema, create(FlowUpdateSchema, { flow: flow as never })))

test('whatever a client sends, it is written or refused, and the rest is answered', async () => {
  await using it = await TestStore.open()
  const results = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 40 }), async (all) => {
      for (const bytes of all) {
        const received = receivedUpdate(fromBinary(FlowUpdateSchema, bytes))
        const result = received.kind === 'update' ? it.store.take(received, '10.0.0.1') : 'unreadable'
        results.set(result, (results.get(result) ?? 0) + 1)
      }
      await it.store.flush()
    }),
    { numRuns: RUNS / 40 },
  )
  const page = { index: 0, size: 0 }
  const { items } = await listFlows((asked) => it.store.read(asked), { range: EVER, filter: NO_FILTER, page, sort: 'dest_name' })
  expect(items.length).toBeGreaterThan(50)
  expect(items.length).toBe(it.store.keyCount)
  for (const result of ['new', 'unreadable', 'untimely']) expect(results.get(result)).toBeGreaterThan(10)
  await it.closeAll()
  await it.stop()
  await it.start()
  expect((await listFlows((asked) => it.store.read(asked), { range: EVER, filter: NO_FILTER, page, sort: 'time' })).totalResults).toBe(
    items.length,
  )
})
