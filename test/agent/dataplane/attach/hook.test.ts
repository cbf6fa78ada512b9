// SPDX-License-Identifier: Apache-2.0
/** Names of hooks. Layer: test. */
import { expect, test } from 'vitest'
import { pinKey, pinName } from '#agent/dataplane/attach/hook.ts'

test('a pin has the name of its place', () => {
  for (const key of ['eth0/ingress', 'eth0.5/egress', 'odd%2ename/egress', 'cgroup/connect4']) expect(pinKey(pinName(key))).toBe(key)
})
