// SPDX-License-Identifier: Apache-2.0
/** Which rules are an older version's. Layer: test. */
import { describe, expect, test } from 'vitest'
import { oldFamilies, oldTables } from '#agent/dataplane/leftovers/old.ts'

function filter(...lines: string[]): string {
  return ['*filter', ':FORWARD DROP [0:0]', ':INPUT ACCEPT [0:0]', ...lines, 'COMMIT', ''].join('\n')
}

describe('chains and rules', () => {
  test('chains go by their names, and whatever leads into them', () => {
    const jump = '-A FORWARD -m comment --comment "npl:wUHhoiAYhphO9Mso" -j npl-FORWARD'
    const listing = filter(
      ':npl-FORWARD - [0:0]',
      ':netplane-before - [0:0]',
      ':MINE - [0:0]',
      jump,
      '-A MINE -g netplane-before',
      '-A npl-FORWARD -j DROP',
    )
    expect(oldTables(listing)).toEqual([
      { name: 'filter', chains: ['npl-FORWARD', 'netplane-before'], jumps: [jump, '-A MINE -g netplane-before'] },
    ])
  })

  test.each([
    ['-A FORWARD -m comment --comment "npl:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -j ACCEPT', true],
    ['-A FORWARD -m comment --comment npl:S93hcgKJrXEqnTfs -j ACCEPT', true],
    ['-A FORWARD -m comment --comment "npl: my own note" -j ACCEPT', false],
    ['-A FORWARD -i npl+ -j ACCEPT', false],
    ['-A FORWARD -i npl+ -j npl-FORWARDS', false],
    ['-A FORWARD -m comment --comment "see npl-FORWARD" -j ACCEPT', false],
  ])('%s: goes: %s', (line, goes) => {
    expect(oldTables(filter(line)).flatMap(({ jumps }) => jumps)).toEqual(goes ? [line] : [])
  })

  test('without anything of theirs there is nothing', () => {
    expect(oldTables(filter(':KUBE-FORWARD - [0:0]', ':cali-FORWARD - [0:0]', '-A FORWARD -j KUBE-FORWARD'))).toEqual([])
    expect(oldTables('')).toEqual([])
  })
})

test('of nftables it is the table of the name, and none of those that this version has', () => {
  expect(oldFamilies('table ip netplane\ntable ip6 netplane\ntable ip netplane-takeover\ntable inet netplane\n')).toEqual(['ip', 'ip6'])
})
