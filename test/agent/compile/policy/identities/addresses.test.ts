// SPDX-License-Identifier: Apache-2.0
/** One question about many prefixes can be interrupted between them. Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { Addresses } from '#agent/compile/policy/identities/addresses.ts'
import { predicateOf } from '#agent/compile/policy/identities/predicates.ts'

test('a list of prefixes is taken in prefix by prefix', () => {
  const nets = Array.from({ length: 1000 }, (_, at) => parseCidr(`10.${at >> 8}.${at & 255}.0/24`))
  const addresses = new Addresses(() => [])
  expect([...addresses.useAtom(predicateOf({ kind: 'nets', nets }))].length).toBeGreaterThanOrEqual(nets.length)
  expect([...addresses.settle()].length).toBeGreaterThanOrEqual(nets.length)
})
