// SPDX-License-Identifier: Apache-2.0
/** Names of hooks, and which of them a stranger may have touched. Layer: test. */
import { expect, test } from 'vitest'
import { pinKey, pinName, unexplained } from '#agent/dataplane/hook.ts'

test('a pin has the name of its place', () => {
  for (const key of ['eth0/ingress', 'eth0.5/egress', 'odd%2ename/egress', 'cgroup/connect4']) expect(pinKey(pinName(key))).toBe(key)
})

test('an interface that went took its programs along: nobody else did', () => {
  const keys = ['npl1/ingress', 'npl1/egress', 'npl12/ingress', 'eth0/ingress', 'cgroup/connect4']
  expect(unexplained(keys, new Set(['npl1', 'cgroup']))).toEqual(['npl12/ingress', 'eth0/ingress', 'cgroup/connect4'])
  expect(unexplained(keys, new Set())).toEqual(keys)
})
