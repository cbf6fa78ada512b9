// SPDX-License-Identifier: Apache-2.0
/** bpf nat, bpf affinity: services as the maps have them. Layer: test. */
import { describe, expect, test } from 'vitest'
import {
  FRONTEND_EXTERNAL,
  FRONTEND_MAGLEV,
  FRONTEND_NODE_PORT,
  FRONTEND_OUTSIDE_LOCAL,
  FRONTEND_RANGES,
  LIVE_CHOSEN,
  MAGLEV_SIZE,
} from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, parseAddr, type Addr } from '#lib/base/ip.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { FakeTables } from '../support/fakes/fake-tables.ts'
import { answer, NOW_MS } from './answer.ts'

const [WEB, LOCAL, DNS, EMPTY] = ['00000000000000aa', '00000000000000ab', '00000000000000bb', '00000000000000cc']

interface FrontendText {
  readonly at: readonly [addr: Addr, port: number, proto?: number]
  readonly inside: readonly [list: string, count: number]
  readonly outside?: readonly [list: string, count: number]
  readonly flags?: number
  readonly affinity?: number
}

function putFrontend(tables: FakeTables, { at, inside, outside = inside, flags = 0, affinity = 0 }: FrontendText): void {
  const [addr, port, proto = 6] = at
  const choice = ([list, count]: readonly [string, number]) => ({ list, count })
  tables.put(catalogue.np_frontends, [
    { addr, port, proto },
    { inside: choice(inside), outside: choice(outside), flags, affinity },
  ])
}

function putBackends(tables: FakeTables, list: string, ...addrs: readonly (readonly [addr: string, node?: string])[]): void {
  for (const [slot, [addr, node]] of addrs.entries()) {
    const value = { addr: parseAddr(addr), node: node === undefined ? ANY_V6 : parseAddr(node), port: 8080, flags: 0 }
    tables.put(catalogue.np_backends, [{ list, slot }, value])
  }
}

/** A service of each kind. */
function someServices(): FakeTables {
  const tables = new FakeTables()
  putBackends(tables, WEB, ['10.1.1.5'], ['10.1.2.5', '192.0.2.2'])
  putBackends(tables, LOCAL, ['10.1.1.5'])
  putBackends(tables, DNS, ['fd00:10::5'])
  putFrontend(tables, { at: [parseAddr('10.96.0.10'), 80], inside: [WEB, 2], affinity: 10_800 })
  putFrontend(tables, {
    at: [parseAddr('203.0.113.7'), 80],
    inside: [WEB, 2],
    outside: [LOCAL, 1],
    flags: FRONTEND_EXTERNAL | FRONTEND_RANGES | FRONTEND_OUTSIDE_LOCAL,
  })
  putFrontend(tables, {
    at: [ANY_V4, 30_080],
    inside: [WEB, 2],
    flags: FRONTEND_NODE_PORT | FRONTEND_EXTERNAL | FRONTEND_MAGLEV,
  })
  putFrontend(tables, { at: [parseAddr('fd00:96::a'), 53, 17], inside: [DNS, 1] })
  putFrontend(tables, { at: [parseAddr('10.96.0.11'), 80], inside: [EMPTY, 0] })
  tables.put(catalogue.np_live, [
    { list: DNS, addr: parseAddr('fd00:10::5'), port: 8080 },
    { flags: LIVE_CHOSEN, slot: 0 },
  ])
  tables.put(catalogue.np_live, [
    { list: DNS, addr: parseAddr('fd00:10::6'), port: 8080 },
    { flags: 0, slot: 0 },
  ])
  tables.put(catalogue.np_maglev, [WEB, { slot: new Uint16Array(MAGLEV_SIZE).map((_, at) => (at % 4 === 0 ? 1 : 0)) }])
  tables.put(catalogue.np_ranges, [{ prefix: 64 + 96 + 24, set: WEB, addr: parseAddr('198.51.100.0') }, 1])
  return tables
}

describe('bpf nat', () => {
  test('each frontend with its lists', async () => {
    expect(await answer('bpf nat', someServices())).toMatchInlineSnapshot(`
      "FRONTEND             FOR      BACKEND            NODE       LIVE    MAGLEV  OPTIONS
      0.0.0.0:30080/TCP    all      10.1.1.5:8080      -          -       75.0%   node-port external maglev
                                    10.1.2.5:8080      192.0.2.2  -       25.0%
      10.96.0.10:80/TCP    all      10.1.1.5:8080      -          -       -       affinity 10800s
                                    10.1.2.5:8080      192.0.2.2  -       -
      10.96.0.11:80/TCP    all      none, refused      -          -       -       -
      203.0.113.7:80/TCP   inside   10.1.1.5:8080      -          -       -       external outside-local from 198.51.100.0/24
                                    10.1.2.5:8080      192.0.2.2  -       -
                           outside  10.1.1.5:8080      -          -       -
      [fd00:96::a]:53/UDP  all      [fd00:10::5]:8080  -          chosen  -       -
                                    [fd00:10::6]:8080  -          kept    -
      "
    `)
  })

  test('those that are asked for, by a backend as well', async () => {
    expect(await answer('bpf nat --addr fd00:10::/32', someServices())).toMatchInlineSnapshot(`
      "FRONTEND             FOR  BACKEND            NODE  LIVE    MAGLEV  OPTIONS
      [fd00:96::a]:53/UDP  all  [fd00:10::5]:8080  -     chosen  -       -
                                [fd00:10::6]:8080  -     kept    -
      "
    `)
    expect(await answer('bpf nat --port 53 --proto tcp --json', someServices())).toBe('[]\n')
  })

  test('as JSON', async () => {
    expect(JSON.parse(await answer('bpf nat --port 53 --json', someServices()))).toMatchInlineSnapshot(`
      [
        {
          "affinity": 0,
          "flags": [],
          "frontend": {
            "address": "fd00:96::a",
            "port": 53,
          },
          "inside": {
            "backends": [
              {
                "address": "fd00:10::5",
                "live": [
                  "chosen",
                ],
                "node": null,
                "port": 8080,
                "share": null,
                "slot": 0,
              },
              {
                "address": "fd00:10::6",
                "live": [],
                "node": null,
                "port": 8080,
                "share": null,
                "slot": null,
              },
            ],
            "list": "00000000000000bb",
          },
          "outside": {
            "backends": [
              {
                "address": "fd00:10::5",
                "live": [
                  "chosen",
                ],
                "node": null,
                "port": 8080,
                "share": null,
                "slot": 0,
              },
              {
                "address": "fd00:10::6",
                "live": [],
                "node": null,
                "port": 8080,
                "share": null,
                "slot": null,
              },
            ],
            "list": "00000000000000bb",
          },
          "proto": "UDP",
          "sourceRanges": null,
        },
      ]
    `)
  })
})

test('bpf affinity', async () => {
  const tables = someServices()
  const backend = { seen: NOW_MS - 61_000, addr: parseAddr('10.1.1.5'), port: 8080 }
  tables.put(catalogue.np_affinity, [{ list: WEB, client: parseAddr('192.168.50.100') }, backend])
  tables.put(catalogue.np_affinity, [{ list: '00000000000000dd', client: parseAddr('fd00::9') }, backend])
  expect(await answer('bpf affinity', tables)).toMatchInlineSnapshot(`
    "CLIENT          SERVICE               BACKEND        AGE
    192.168.50.100  10.96.0.10:80/TCP +2  10.1.1.5:8080  61s
    fd00::9         00000000000000dd      10.1.1.5:8080  61s
    "
  `)
})
