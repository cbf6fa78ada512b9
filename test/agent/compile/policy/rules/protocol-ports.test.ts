// SPDX-License-Identifier: Apache-2.0
/** Ranges and planes against the plain sets that they mean. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  common,
  except,
  intersect,
  only,
  outside,
  protocolPortsText,
  rangesFor,
  rangesOf,
} from '#agent/compile/policy/rules/protocol-ports.ts'
import type { Ranges } from '#agent/compile/policy/rules/protocol-ports.ts'

const port = fc.constantFrom(0, 1, 2, 3, 80, 81, 65534, 65535)
const ranges = fc
  .array(
    fc.tuple(port, port).map(([a, b]): [number, number] => [Math.min(a, b), Math.max(a, b)]),
    { maxLength: 4 },
  )
  .map(rangesOf)

function has(all: Ranges, value: number): boolean {
  return all.some(([from, to]) => from <= value && value <= to)
}

test('ranges are the sets that they mean, sorted and apart', () => {
  fc.assert(
    fc.property(ranges, ranges, port, (a, b, value) => {
      expect(has(common(a, b), value)).toBe(has(a, value) && has(b, value))
      expect(has(outside(a), value)).toBe(!has(a, value))
      for (const all of [a, outside(a), common(a, b)])
        for (const [at, [from]] of all.entries()) if (at > 0) expect(from).toBeGreaterThan((all[at - 1]?.[1] ?? 0) + 1)
    }),
  )
})

test('planes are met protocol by protocol, and equal ones have equal texts', () => {
  const plane = fc
    .tuple(fc.boolean(), fc.subarray([6, 17, 1]), ranges)
    .map(([is, protocols, some]) => (is ? only(protocols, some) : except(protocols, some)))
  fc.assert(
    fc.property(fc.record({ a: plane, b: plane, proto: fc.constantFrom(1, 6, 17, 47), value: port }), ({ a, b, proto, value }) => {
      expect(has(rangesFor(intersect(a, b), proto), value)).toBe(has(rangesFor(a, proto), value) && has(rangesFor(b, proto), value))
      expect(protocolPortsText(intersect(a, b))).toBe(protocolPortsText(intersect(b, a)))
    }),
  )
})
