// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tryParseAddr } from '#lib/base/ip.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { reachable } from '#lib/kube/parse/special-addresses.ts'
import { anyAddress, holds } from '../../../support/address-texts.ts'

/** Undefined: it is taken. */
function refusal(text: string): string | undefined {
  try {
    reachable.read(text)
    return undefined
  } catch (thrown) {
    if (thrown instanceof FieldError) return thrown.reason
    throw thrown
  }
}

const NONE = 'must not be the unspecified address'
const LOOPBACK = 'must not be a loopback address'
const LINK_LOCAL = 'must not be a link-local address'
const MULTICAST = 'must not be a multicast address'
const BROADCAST = 'must not be the broadcast address'
const NO_HOST = 'must not be an address of 0.0.0.0/8, which no host has'

test.each([
  ['0.0.0.0', NONE],
  ['::', NONE],
  ['0:0::0', NONE],
  ['0000:0:0:0:0:0:0:0', NONE],
  ['::0.0.0.0', NONE],
  ['127.0.0.1', LOOPBACK],
  ['127.255.255.255', LOOPBACK],
  ['::1', LOOPBACK],
  ['0:0::0001', LOOPBACK],
  ['::0.0.0.1', LOOPBACK],
  ['169.254.0.0', LINK_LOCAL],
  ['fe80::1', LINK_LOCAL],
  ['FEBF:1::', LINK_LOCAL],
  ['224.0.0.255', MULTICAST],
  ['224.0.1.0', MULTICAST],
  ['239.255.255.255', MULTICAST],
  ['ff02::', MULTICAST],
  ['ff01::', MULTICAST],
  ['FFFE::1', MULTICAST],
  ['255.255.255.255', BROADCAST],
  ['0.0.0.1', NO_HOST],
  ['0.255.0.0', NO_HOST],
  ['1.0.0.0', undefined],
  ['223.255.255.255', undefined],
  ['240.0.0.1', undefined],
  ['255.255.255.254', undefined],
  ['10.0.0.0', undefined],
  ['12.7.0.1', undefined],
  ['127::', undefined],
  ['128.0.0.0', undefined],
  ['169.253.255.255', undefined],
  ['::2', undefined],
  ['::10', undefined],
  ['::1:0', undefined],
  ['::0.0.0.2', undefined],
  ['0:0:0:0:ffff:0:0:0', undefined],
  ['1::', undefined],
  ['fe7f::', undefined],
  ['fec0::', undefined],
  ['fe8::', undefined],
  ['feff::', undefined],
  ['ff::', undefined],
  ['ff2::', undefined],
])('%s: %s, to the parser and to the schema', (text, reason) => {
  expect(refusal(text)).toBe(reason)
  expect(holds(reachable.schema, text)).toBe(reason === undefined)
})

test('the schema refuses what the parser refuses, and old forms, however an address is written', () => {
  fc.assert(
    fc.property(anyAddress, (text) => {
      const isTaken = refusal(text) === undefined && tryParseAddr(text) !== undefined
      expect([text, holds(reachable.schema, text)]).toEqual([text, isTaken])
    }),
    { numRuns: 5000 },
  )
})
