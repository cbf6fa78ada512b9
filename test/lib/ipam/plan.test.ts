// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { isAbandoned } from '#lib/ipam/plan.ts'
import { node, pod, snapshotOf } from '../../support/build.ts'

const BLOCK = { cidr: parseCidr('10.1.2.0/28'), node: 'n1', held: new Map(), freed: new Map() }

test.each([
  ['its node is there', [node('n1')], false],
  ['a pod has an address of it', [node('n2'), pod('web', { node: 'n2', ips: ['10.1.2.3'] })], false],
  ['neither is left', [node('n2'), pod('web', { node: 'n2', ips: ['10.1.2.16'] })], true],
])('a block is abandoned or not: %s', (_, manifests, abandoned) => {
  expect(isAbandoned(BLOCK, snapshotOf(manifests))).toBe(abandoned)
})
