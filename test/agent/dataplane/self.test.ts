// SPDX-License-Identifier: Apache-2.0
/** Who is believed about an address. Layer: test. */
import { expect, test } from 'vitest'
import { compareAddressOwners, SELF_OWNER } from '#agent/dataplane/self.ts'

test('pods and nodes of the cluster, then our interfaces, then services', () => {
  const owners = [SELF_OWNER, 'Service/default/a', 'Pod/default/a', 'Node/n1', 'Service/default/b']
  expect(owners.sort(compareAddressOwners)).toEqual(['Node/n1', 'Pod/default/a', SELF_OWNER, 'Service/default/a', 'Service/default/b'])
})
