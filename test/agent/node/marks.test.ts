// SPDX-License-Identifier: Apache-2.0
/** The bits of packets' marks are ours by one header. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bitsText, collisions, iptablesMarks, nftMarks, OUR_MARK_BITS, usedBits } from '#agent/node/firewall/marks.ts'
import { packageRoot } from '#lib/base/os/package.ts'

test('our bits are those of the programs', () => {
  const header = readFileSync(join(packageRoot(), 'bpf/include/base/mark.h'), 'utf8')
  const bits = [...header.matchAll(/^#define NP_MARK_\w+ (0x\w+)$/gm)].map(([, bit]) => Number(bit))
  expect(bits.length).toBeGreaterThan(1)
  expect(bits.reduce((sum, bit) => sum | bit, 0)).toBe(OUR_MARK_BITS)
})

test('a mask of all bits is none, and the value counts', () => {
  expect([usedBits(1, 0xffffffff), usedBits(0, 0xff00), usedBits(-1, -1)].map(bitsText)).toEqual(['0x00000001', '0x0000ff00', '0xffffffff'])
})

test('rules of iptables: marks of packets, and what is copied from their connections', () => {
  const saved = `*mangle
:MINE - [0:0]
-A MINE -m mark ! --mark 0x1000000/0x1000000 -j RETURN
-A MINE -m connmark --mark 0x2000000/0x2000000 -j CONNMARK --restore-mark --nfmask 0xf000000 --ctmask 0xf000000
-A MINE -m comment --comment "a \\"-j MARK --set-xmark 0x4000000/0x4000000\\"" -j CONNMARK --set-xmark 0x4000000/0x4000000
COMMIT
*nat
-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE
COMMIT
`
  expect(iptablesMarks('iptables-nft', saved).map(({ where, bits }) => `${where}: ${bitsText(bits)}`)).toEqual([
    'iptables-nft mangle, chain MINE: 0x01000000',
    'iptables-nft mangle, chain MINE: 0x0f000000',
    'iptables-nft nat, chain POSTROUTING: 0x00004000',
  ])
  expect(collisions(iptablesMarks('t', saved))).toEqual([{ where: 't mangle, chain MINE', bits: 0x0f000000 }])
})

test('rules of nftables: a set of values, and tables that are told of elsewhere', () => {
  const mark = { meta: { key: 'mark' } }
  const rule = (table: string, expr: unknown[]): unknown => ({ rule: { family: 'inet', table, chain: 'c', expr } })
  const listing = JSON.stringify({
    nftables: [
      { metainfo: {} },
      rule('a', [{ match: { op: '==', left: mark, right: { set: [1, 0x2000000] } } }]),
      rule('b', [{ mangle: { key: mark, value: { '|': [{ '&': [mark, 0xff0fffff] }, 0x100000] } } }]),
      rule('c', [{ mangle: { key: { ct: { key: 'mark' } }, value: mark } }]),
      rule('d', [{ mangle: { key: mark, value: 0x1000000 } }]),
    ],
  })
  const uses = nftMarks(listing, (_, table) => table === 'd').map(({ where, bits }) => `${where}: ${bitsText(bits)}`)
  expect(uses).toEqual([
    'nft inet a, chain c: 0x00000001',
    'nft inet a, chain c: 0x02000000',
    'nft inet b, chain c: 0x00100000',
    'nft inet b, chain c: 0x00f00000',
  ])
})
