// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { flowKey, flowTuple, reversed } from '#agent/maps/flow-key.ts'

const addr = fc
  .oneof(
    fc.ipV4(),
    fc.ipV6().filter((text) => !text.includes('.')),
  )
  .map(parseAddr)
const port = fc.integer({ min: 0, max: 65_535 })
const tuple = fc.record({ src: addr, dst: addr, sport: port, dport: port })
const OF = { proto: 6, lane: 3 }

test('both directions have one key, which gives both back', () => {
  fc.assert(
    fc.property(tuple, (sent) => {
      const [key, direction] = flowKey(sent, OF)
      const [answerKey, answering] = flowKey(reversed(sent), OF)
      expect(answerKey).toEqual(key)
      expect(flowTuple(key, direction)).toEqual(sent)
      expect(flowTuple(key, answering)).toEqual(reversed(sent))
      expect(key).toMatchObject(OF)
    }),
  )
})

// that programs order them so is seen by test/kernel/packets, whose runner finds their entries by this
test('of one address the ports decide', () => {
  const one = parseAddr('10.0.0.1')
  const [key] = flowKey({ src: one, dst: one, sport: 80, dport: 80 }, OF)
  expect(key).toEqual({ lo: one, hi: one, lo_port: 80, hi_port: 80, ...OF })
})
