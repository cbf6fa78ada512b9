// SPDX-License-Identifier: Apache-2.0
/** Longest prefixes, against all prefixes tried one by one. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cidrContains, formatCidr, isV4, maskAddr, parseAddr, parseCidr, depthOf, type Cidr } from '#lib/base/ip.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'

const addr = fc.constantFrom('10.0.0.1', '10.0.0.129', '10.1.0.1', 'fd00::1', 'fd00::8001', 'fd01::1').map(parseAddr)
const cidr = fc.tuple(addr, fc.nat(128)).map(([one, bits]): Cidr => {
  const kept = isV4(one) ? bits % 33 : bits
  return { addr: maskAddr(one, kept), bits: kept }
})

test('an address has the value of the longest prefix around it', () => {
  fc.assert(
    fc.property(fc.array(cidr, { maxLength: 8 }), addr, (cidrs, asked) => {
      const map = new PrefixMap<string>()
      for (const one of cidrs) map.set(one, formatCidr(one))
      const around = cidrs.filter((one) => cidrContains(one, asked)).sort((a, b) => depthOf(b) - depthOf(a))
      const isAnyFamily = cidrs.some((one) => one.bits === 0 && !isV4(one.addr))
      expect(map.find(asked)).toBe(around[0] === undefined ? (isAnyFamily ? '::/0' : undefined) : formatCidr(around[0]))
      for (const one of cidrs) expect(map.get(one)).toBe(formatCidr(one))
    }),
  )
})

test('of the first bits of an address only shorter prefixes are asked', () => {
  const map = new PrefixMap<number>()
  map.set(parseCidr('10.0.0.0/8'), 8)
  map.set(parseCidr('10.0.0.0/24'), 24)
  expect([map.find(parseAddr('10.0.0.0'), 96 + 24), map.find(parseAddr('10.0.0.0'), 96 + 23)]).toEqual([24, 8])
})
