// SPDX-License-Identifier: Apache-2.0
/** Identities come and go with the addresses that have them. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { expect, test } from 'vitest'
import { predicateOf } from '#agent/compile/policy/identities/predicates.ts'
import { Identities, NO_IDENTITY } from '#agent/compile/policy/identities/identities.ts'
import { parseCidr } from '#lib/base/ip.ts'

const atom = predicateOf({ kind: 'nets', nets: [parseCidr('10.0.0.0/8')] })
const other = predicateOf({ kind: 'nets', nets: [parseCidr('10.1.0.0/16')] })

test('nothing is left of an identity that no address has, whatever became of the list that it was made of', () => {
  const identities = new Identities()
  const list = [identities.useAtom(atom).live]
  const identity = identities.take(list)
  expect([...atOnce(identities.having([atom.key]))]).toEqual([identity])
  list.pop()
  identities.release(identity)
  expect(atOnce(identities.sweep())).toEqual([identity])
  expect([...atOnce(identities.having([atom.key]))]).toEqual([])
  expect(identities.size).toBe(1)
})

test('a transitional identity has the predicates of both, and goes with the next sweep', () => {
  const identities = new Identities()
  const [was, now] = [atom, other].map((one) => identities.take([identities.useAtom(one).live]))
  if (was === undefined || now === undefined) throw new Error('two were made')
  const between = identities.between(was, now)
  expect(identities.between(was, now)).toBe(between)
  expect([0, was.id, now.id]).not.toContain(between.id)
  expect([between.was, between.isTrue]).toEqual([was, now.isTrue])
  expect([...atOnce(identities.having([atom.key]))]).toEqual([was, between])
  expect([...atOnce(identities.having([other.key]))]).toEqual([now, between])
  expect(atOnce(identities.sweep())).toEqual([between])
  expect(identities.size).toBe(3)
  expect(identities.take([])).toBe(NO_IDENTITY)
})
