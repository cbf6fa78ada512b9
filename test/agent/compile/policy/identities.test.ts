// SPDX-License-Identifier: Apache-2.0
/** Identities come and go with those who have them. Layer: test. */
import { expect, test } from 'vitest'
import { atomOf } from '#agent/compile/policy/atoms.ts'
import { Identities } from '#agent/compile/policy/identities.ts'
import { parseCidr } from '#lib/base/ip.ts'

const atom = atomOf({ kind: 'nets', nets: [parseCidr('10.0.0.0/8')] })

test('nothing is left of one that nobody has, whatever became of the list that it was made of', () => {
  const identities = new Identities()
  const list = [identities.useAtom(atom).live]
  const identity = identities.take(list)
  expect([...identities.having([atom.key])]).toEqual([identity])
  list.pop()
  identities.release(identity)
  expect(identities.sweep()).toEqual([identity])
  expect([...identities.having([atom.key])]).toEqual([])
  expect(identities.size).toBe(1)
})
