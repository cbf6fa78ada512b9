// SPDX-License-Identifier: Apache-2.0
/** bpf routes, bpf counters. Layer: test. */
import { expect, test } from 'vitest'
import { ADDR_LOCAL_POD, ADDR_MASQUERADE, ADDR_NODE, ADDR_NODE_PORTS, ADDR_SELF, ADDR_SERVICE } from '#lib/base/bpf-constants.ts'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { FakeTables } from '../support/fakes/fake-tables.ts'
import { answer } from './answer.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'

const WEB = '00000000000000aa'

test('bpf routes, by kind', async () => {
  const tables = new FakeTables()
  const choice = { list: WEB, count: 0 }
  tables.put(catalogue.np_addrs, [parseAddr('10.96.0.10'), addrInfo(ADDR_SERVICE)])
  tables.put(catalogue.np_addrs, [parseAddr('10.1.1.5'), addrInfo(ADDR_LOCAL_POD, { flags: ADDR_MASQUERADE, ifindex: 7 })])
  tables.put(catalogue.np_addrs, [parseAddr('192.0.2.1'), addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS })])
  tables.put(catalogue.np_addrs, [parseAddr('192.0.2.2'), addrInfo(ADDR_NODE, { flags: 1 << 14 })])
  tables.put(catalogue.np_routes, [{ prefix: 64, addr: parseAddr('fd00:10:2::') }, { node: parseAddr('fd00::2') }])
  tables.put(catalogue.np_routes, [{ prefix: 96 + 24, addr: parseAddr('10.1.2.0') }, { node: parseAddr('192.0.2.2') }])
  tables.put(catalogue.np_frontends, [
    { addr: parseAddr('203.0.113.7'), port: 80, proto: 6 },
    { inside: choice, outside: choice, flags: 0, affinity: 0 },
  ])
  tables.put(
    catalogue.np_ranges,
    [{ prefix: 64 + 96 + 24, set: WEB, addr: parseAddr('198.51.100.0') }, 1],
    [{ prefix: 64 + 96 + 16, set: '0000000000000001', addr: parseAddr('10.1.0.0') }, 1],
    [{ prefix: 64, set: '0000000000000002', addr: ANY_V6 }, 1],
    [{ prefix: 64 + 96 + 32, set: '00000000000000ee', addr: parseAddr('10.9.9.9') }, 1],
  )
  expect(await answer('bpf routes', tables)).toMatchInlineSnapshot(`
    "KIND         PREFIX           AT                  FLAGS
    local-pod    10.1.1.5/32      if7                 masquerade
    self         192.0.2.1/32     -                   node-ports
    node         192.0.2.2/32     -                   bit 14
    service      10.96.0.10/32    -
    overlay      10.1.2.0/24      192.0.2.2
    overlay      fd00:10:2::/64   fd00::2
    inside       10.1.0.0/16      -
    tunnel-back  ::/0             -
    source       198.51.100.0/24  203.0.113.7:80/TCP
    source       10.9.9.9/32      00000000000000ee
    "
  `)
})

test('bpf counters: what has counted, and all', async () => {
  const tables = new FakeTables()
  tables.counts['no_backend'] = 12_345
  tables.counts['flow_new'] = 7
  expect(await answer('bpf counters', tables)).toMatchInlineSnapshot(`
    "KIND   NAME        COUNT
    drop   no_backend  12345
    event  flow_new    7
    "
  `)
  const all = await answer('bpf counters --all', tables)
  expect(all).toMatch(/^drop +ttl +0$/m)
  expect(all).not.toMatch(/^drop +none/m)
  expect(await answer('bpf counters --json', new FakeTables())).toBe('[]\n')
})
