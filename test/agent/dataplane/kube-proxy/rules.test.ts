// SPDX-License-Identifier: Apache-2.0
/** What is found in rule sets of a real kube-proxy 1.34 (both families), and what is left alone. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  proxyFamilies,
  proxyTables,
  redirectEndInput,
  redirectInput,
  takeoverEndInput,
  unservedAddresses,
} from '#agent/dataplane/kube-proxy/rules.ts'
import { removalInput } from '#agent/dataplane/netfilter/rule-tables.ts'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'

const saved = (name: string): string => readFileSync(join(import.meta.dirname, name), 'utf8')

/** One table with these rules, and a chain declared for everything a rule is added to. */
function nat(...rules: string[]): string {
  const chains = [...new Set(rules.map((rule) => rule.split(' ')[1] ?? ''))]
  const declared = chains.map((chain) => (/^[A-Z]+$/.test(chain) ? `:${chain} ACCEPT [0:0]` : `:${chain} - [0:0]`))
  return ['*nat', ...declared, ...rules, 'COMMIT', ''].join('\n')
}

describe.each(['iptables.txt', 'ip6tables.txt'])('%s', (name) => {
  const tables = proxyTables(saved(name))

  test('everything with its prefix is its own, but what the kubelet keeps too', () => {
    const prefixed = [...saved(name).matchAll(/^:(KUBE-\S+)/gm)].map(([, chain = '']) => chain)
    const left = prefixed.filter((chain) => !tables.some(({ chains }) => chains.includes(chain)))
    expect([...new Set(left)]).toEqual(['KUBE-FIREWALL'])
  })

  test('the jumps are all rules of built-in chains that lead into its own', () => {
    const jumps = [...saved(name).matchAll(/^-A [A-Z]+ .*$/gm)].map(([line]) => line).filter((line) => !line.endsWith('-j KUBE-FIREWALL'))
    expect(tables.flatMap((table) => table.jumps)).toEqual(jumps)
    expect(jumps.length).toBeGreaterThan(10)
  })

  test('taken away, nothing is found any more', () => {
    const removed = new Set(removalInput(tables).split('\n'))
    const rest = saved(name)
      .split('\n')
      .filter((line) => !removed.has(line.replace(/^-A/, '-D')) && !removed.has(line) && !/^-A KUBE-(?!FIREWALL)/.test(line))
    expect(proxyTables(rest.join('\n'))).toEqual([])
  })
})

describe('of others', () => {
  test.each([
    ['a comment that names a chain', '-A INPUT -m comment --comment "no -j KUBE-SERVICES here" -j ACCEPT'],
    ['a comment that ends like a jump', '-A INPUT -j ACCEPT -m comment --comment "-j KUBE-SERVICES"'],
    ['a log text', '-A INPUT -j LOG --log-prefix "-j KUBE-SERVICES "'],
    ['a network policy controller', '-A KUBE-NWPLCY-DEFAULT -j MARK --set-xmark 0x10000/0x10000'],
    ['the kubelet', '-A INPUT -j KUBE-FIREWALL'],
    ['a name that only begins so', '-A KUBE-SERVICES-OF-MINE -j ACCEPT'],
  ])('%s stays', (_, rule) => {
    const [table] = proxyTables(nat('-A KUBE-SERVICES -j RETURN', rule))
    expect(table).toEqual({ name: 'nat', chains: ['KUBE-SERVICES'], jumps: [] })
  })

  test('a chain loses its jump into a chain that goes, and nothing else', () => {
    const [table] = proxyTables(nat('-A MINE -j ACCEPT', '-A MINE -p tcp -g KUBE-SERVICES', '-A KUBE-SERVICES -j RETURN'))
    expect(table?.jumps).toEqual(['-A MINE -p tcp -g KUBE-SERVICES'])
  })

  test('a chain that borrows the mark keeps it, and the masquerading with it', () => {
    const [table] = proxyTables(
      nat(
        '-A POSTROUTING -j KUBE-POSTROUTING',
        '-A CNI-DN-1 -p tcp -j KUBE-MARK-MASQ',
        '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
        '-A KUBE-POSTROUTING -j MASQUERADE',
        '-A KUBE-SERVICES -j KUBE-MARK-MASQ',
      ),
    )
    expect(table).toEqual({ name: 'nat', chains: ['KUBE-SERVICES'], jumps: [] })
  })

  test('a rule that is there twice is taken twice', () => {
    const jump = '-A OUTPUT -j KUBE-SERVICES'
    const input = removalInput(proxyTables(nat(jump, jump, '-A KUBE-SERVICES -j RETURN')))
    expect(input).toBe(
      ['*nat', ':KUBE-SERVICES - [0:0]', '-D OUTPUT -j KUBE-SERVICES', '-D OUTPUT -j KUBE-SERVICES', '-X KUBE-SERVICES', 'COMMIT', ''].join(
        '\n',
      ),
    )
  })

  test('without rules of kube-proxy there is nothing to remove', () => {
    expect(proxyTables(nat('-A INPUT -j ACCEPT'))).toEqual([])
    expect(removalInput([])).toBe('')
  })
})

test.each([
  ['table ip kube-proxy\ntable ip6 kube-proxy\ntable ip nat\n', ['ip', 'ip6']],
  ['table inet kube-proxy\ntable ip kube-proxy-of-mine\n', []],
  ['', []],
])('nft list tables: %j', (listing, families) => {
  expect(proxyFamilies(listing)).toEqual(families)
})

test('the tables of a real one', () => {
  expect(proxyFamilies(saved('nftables.txt').replaceAll(' {', ''))).toEqual(['ip', 'ip6'])
})

test.each([
  ['iptables.txt', '10.97.0.11', '10.97.0.2'],
  ['ip6tables.txt', 'fd00:97::13', 'fd00:97::'],
  ['nftables.txt', '10.97.0.12', '10.97.0.2'],
])('%s has rules for %s, and none for %s', (name, served, unserved) => {
  expect(unservedAddresses([served, unserved].map(parseAddr), [saved(name)]).map(formatAddr)).toEqual([unserved])
})

test('a takeover is ended where it is, and nowhere else', () => {
  expect(takeoverEndInput('table ip netplane-takeover\ntable inet netplane-takeover\ntable ip nat\n')).toBe(
    'delete table ip netplane-takeover\n',
  )
  expect(takeoverEndInput('table ip netplane-takeover-of-mine\n')).toBe('')
})

test('ports are redirected in both families, from outside and from the node itself, in place of those before', () => {
  const lines = redirectInput(new Map([[10256, 40001]])).split('\n')
  const rule = 'tcp dport 10256 tcp flags & (fin|syn|rst|ack) == syn fib daddr type local dnat to :40001'
  const added = ['ip', 'ip6'].flatMap((family) =>
    ['prerouting', 'output'].map((hook) => `add rule ${family} netplane-ports ${hook} ${rule}`),
  )
  expect(lines.filter((line) => line.startsWith('add rule'))).toEqual(added)
  for (const line of added) {
    const flush = lines.indexOf(line.replace('add rule', 'flush chain').replace(` ${rule}`, ''))
    expect([flush, lines.indexOf(line)]).toEqual([expect.any(Number), flush + 1])
    expect(flush).toBeGreaterThan(0)
  }
  expect(redirectInput(new Map())).not.toContain('add rule')
})

test('a redirect is ended where it is, and nowhere else', () => {
  expect(redirectEndInput('table ip6 netplane-ports\ntable ip netplane-takeover\ntable ip netplane-ports-of-mine\n')).toBe(
    'delete table ip6 netplane-ports\n',
  )
})
