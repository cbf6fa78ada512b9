// SPDX-License-Identifier: Apache-2.0
/** Which owner's row of an address wins. Layer: test. */
import { expect, test } from 'vitest'
import { ADDR_EXTERNAL, ADDR_NODE, ADDR_SERVICE } from '#lib/base/bpf-constants.ts'
import { KeyOwners } from '#agent/dataplane/maps/key-owners.ts'
import { addressClaims, SELF_OWNER } from '#agent/dataplane/host/node-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { textWriter } from '#agent/maps/byte-rows.ts'
import { addrInfo } from '../../../../testkit/packets/addr-info.ts'
import { bindDeclared, builtObject } from '../../../support/compiled.ts'

const { value } = bindDeclared(catalogue.np_addrs, builtObject('workload').btf)
const write = textWriter(value)
const [node, cluster, external] = [write(addrInfo(ADDR_NODE)), write(addrInfo(ADDR_SERVICE)), write(addrInfo(0, { flags: ADDR_EXTERNAL }))]
const byClaim = addressClaims(value)

test('pods and nodes of the cluster go before the node’s own interfaces, and services come last', () => {
  const owners = [SELF_OWNER, 'Service/default/a', 'Pod/default/a', 'Node/n1', 'Service/default/b']
  const claims = owners.map((owner) => ({ owner, value: owner.startsWith('Service/') ? cluster : node }))
  expect(claims.sort(byClaim).map(({ owner }) => owner)).toEqual([
    ...['Node/n1', 'Pod/default/a', SELF_OWNER],
    ...['Service/default/a', 'Service/default/b'],
  ])
})

test('no service makes another’s cluster address a foreign one, in whatever order they come and change', () => {
  const rows = new Map<string, string>()
  const claims = new KeyOwners(
    { want: (key, row) => rows.set(key, row), unwant: (key) => rows.delete(key), wanted: (key) => rows.get(key) },
    byClaim,
  )
  const say = (owner: string, row: string | undefined): string | undefined => {
    claims.setFragment(`Service/default/${owner}`, row === undefined ? [] : [['k', row]])
    return rows.get('k')
  }
  expect(say('a-thief', external)).toBe(external)
  expect(say('web', cluster)).toBe(cluster)
  expect(say('another', external)).toBe(cluster)
  expect(say('web', external), 'it has another cluster address now').toBe(external)
  expect(say('web', cluster)).toBe(cluster)
  expect(say('a-thief', undefined)).toBe(cluster)
  expect(say('web', undefined)).toBe(external)
  expect(say('another', undefined)).toBeUndefined()
})
