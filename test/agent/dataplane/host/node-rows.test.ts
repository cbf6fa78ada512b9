// SPDX-License-Identifier: Apache-2.0
/** Which owner's row of an address wins. Layer: test. */
import { expect, test } from 'vitest'
import { ADDR_EXTERNAL, ADDR_NODE, ADDR_SERVICE } from '#lib/base/bpf-constants.ts'
import { formatCidr, parseCidr } from '#lib/base/ip.ts'
import { KeyOwners } from '#agent/dataplane/maps/key-owners.ts'
import { addressClaims, SELF_OWNER, selfFragment } from '#agent/dataplane/host/node-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { textWriter } from '#agent/maps/byte-rows.ts'
import { addrInfo } from '../../../../testkit/packets/addr-info.ts'
import { bindDeclared, builtObject } from '../../../support/compiled.ts'
import { withLocal } from '../../../support/interfaces.ts'

const { value } = bindDeclared(catalogue.np_addrs, builtObject('tc').btf)
const write = textWriter(value)
const [node, cluster, external] = [write(addrInfo(ADDR_NODE)), write(addrInfo(ADDR_SERVICE)), write(addrInfo(0, { flags: ADDR_EXTERNAL }))]
const byClaim = addressClaims(value)

test("what the kernel takes for the node as a whole are prefixes of the node's own, with node ports where these are served", () => {
  const found = withLocal(['127.0.0.0/8', '10.9.0.0/24', '10.8.0.0/16', 'fd00:9::/64', '192.0.2.9/32'])
  const text = (nodePorts: readonly string[]): string[] =>
    selfFragment(found, nodePorts.map(parseCidr)).rows.flatMap((row) =>
      row.table === 'ranges' ? [`${Number(row.key.set)} ${formatCidr(row.key.cidr)}`] : [],
    )
  const own = ['3 10.8.0.0/16', '3 10.9.0.0/24', '3 fd00:9::/64']
  expect(text([])).toEqual([...own, '4 10.8.0.0/16', '4 10.9.0.0/24', '4 fd00:9::/64'])
  expect(text(['10.8.7.0/24', '10.9.0.0/16', '192.0.2.0/24'])).toEqual([...own, '4 10.8.7.0/24', '4 10.9.0.0/24'])
})

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
