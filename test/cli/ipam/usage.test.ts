// SPDX-License-Identifier: Apache-2.0
/** What the command tells of pools, blocks and single addresses. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { addressText, borrowedText, usageText } from '../../../cli/ipam/usage.ts'
import { node, pod, pool } from '../../support/build.ts'
import { addressesOf, block } from './addresses.ts'

const { view } = await addressesOf(
  pool('v4', { cidr: '10.1.0.0/24' }),
  pool('within', { cidr: '10.1.0.128/26' }),
  pool('v6', { cidr: 'fd00::/48' }),
  node('n1'),
  block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web', '10.1.0.2': 'shop/b' }),
  block('10.1.0.128/26', 'n2', { '10.1.0.129': 'shop/c' }),
  block('10.7.0.0/26', 'n1'),
  pod('shop/web', { node: 'n1', ips: ['10.1.0.1'] }),
  pod('shop/c', { node: 'n1', ips: ['10.1.0.129'] }),
)

test('totals are of each pool, of the smallest where pools are within others', () => {
  expect(usageText(view, false)).toBe(`GROUPING       CIDR           NODE  IPS TOTAL  IPS IN USE  IPS FREE
IPPool v4      10.1.0.0/24    -     256        2 (1%)      254 (99%)
IPPool within  10.1.0.128/26  -     64         1 (2%)      63 (98%)
IPPool v6      fd00::/48      -     2^80       0 (0%)      2^80 (100%)
no IPPool      -              -     64         0 (0%)      64 (100%)
`)
})

test('blocks stand below their pools', () => {
  const lines = usageText(view, true).split('\n')
  expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3).join(' '))).toEqual([
    'GROUPING CIDR NODE',
    'IPPool v4 10.1.0.0/24 -',
    'Block 10.1.0.0/26 n1',
    'IPPool within 10.1.0.128/26 -',
    'Block 10.1.0.128/26 n2',
    'IPPool v6 fd00::/48 -',
    'no IPPool - -',
    'Block 10.7.0.0/26 n1',
    '',
  ])
})

test('an address has its pod, block and pool', () => {
  expect(addressText(view, parseAddr('10.1.0.1'))).toBe(`IP 10.1.0.1 is in use
  Given to:   pod shop/web, container c-web
  Pods:       shop/web on node n1
  Block:      10.1.0.0/26 of node n1
  IPPool:     v4
`)
  expect(addressText(view, parseAddr('10.1.0.200'))).toBe(
    'IP 10.1.0.200 is not in use\n  Pods:       -\n  Block:      -\n  IPPool:     v4\n',
  )
})

test('borrowed ones are those of pods on other nodes', () => {
  expect(borrowedText(view)).toBe(
    'IP          BORROWING-NODE  BLOCK          BLOCK OWNER  ALLOCATED-TO\n10.1.0.129  n1              10.1.0.128/26  n2           shop/c\n',
  )
})
