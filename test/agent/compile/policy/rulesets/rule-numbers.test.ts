// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { isOfCluster, RuleNumbers } from '#agent/compile/policy/rulesets/rule-numbers.ts'

test('rules of ClusterNetworkPolicies, and they alone, have numbers of which programs know them', () => {
  const numbers = new RuleNumbers()
  const kinds = ['ClusterNetworkPolicy', 'AdminNetworkPolicy', 'GlobalNetworkPolicy', 'Tier']
  const names = kinds.flatMap((kind) => Array.from({ length: 5000 }, (_, at) => `${kind}/a${at} ingress 0`))
  const taken = names.map((name) => numbers.take(name))
  expect(new Set(taken).size).toBe(names.length)
  expect(taken.every((number) => Number.isInteger(number) && number > 0 && number < 2 ** 32)).toBe(true)
  expect(names.filter((_, at) => isOfCluster(taken[at] ?? 0))).toEqual(names.slice(0, 5000))
  // the same after a restart, but for names that share a hash
  const again = new RuleNumbers()
  expect(again.take(names[7] ?? '')).toBe(taken[7])
})
