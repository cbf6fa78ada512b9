// SPDX-License-Identifier: Apache-2.0
/** What is promised of the cluster of the soak: what is to be closed is never opened, whatever policies come on top. */
import { expect, test } from 'vitest'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { clusterObjects, extraPolicies, nodeObjects } from '../../../soak/pods/cluster.ts'
import { NEVER_ECHO } from '../../../soak/marks/marked-flows.ts'
import { Random } from '../../../soak/random.ts'

function ports(policy: object): unknown[] {
  return listAt(policy, 'spec.ingress').flatMap((rule) => listAt(rule, 'ports').map((port) => numberAt(port, 'port')))
}

test('no policy opens the closed port, and none closes what pods send', () => {
  const random = new Random(3)
  const policies = Array.from({ length: 200 }, () => extraPolicies(random)).flat()
  const base = clusterObjects().filter((object) => textAt(object, 'kind') === 'NetworkPolicy')
  expect(base).toHaveLength(1)
  for (const policy of [...base, ...policies]) {
    const rules = listAt(policy, 'spec.ingress')
    // a rule without ports is for all
    expect(rules.every((rule) => listAt(rule, 'ports').length > 0)).toBe(true)
    expect(ports(policy)).not.toContain(NEVER_ECHO)
    if (listAt(policy, 'spec.policyTypes').includes('Egress')) expect(listAt(policy, 'spec.egress')).toEqual([{}])
  }
})

test('nodes have no ranges of their own', () => {
  expect(nodeObjects().map(({ object }) => 'spec' in object)).toEqual([false, false, false])
})
