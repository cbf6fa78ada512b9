// SPDX-License-Identifier: Apache-2.0
/** Rules of well-known firewalls in a real kernel, as netfilter's own tools tell them. Layer: test. */
import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, test } from 'vitest'
import { toolRunner } from '#lib/base/os/run-tool.ts'
import { findFirewalls, type FirewallReport } from '#agent/node/firewall/detect.ts'
import { ownDevices } from '#agent/node/firewall/pod-devices.ts'
import { legacyTables } from '#agent/node/firewall/legacy.ts'
import { DOCKER, FIREWALLD, ufw } from '../../agent/node/firewall/rules.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

function feed(command: readonly string[], input = ''): void {
  const [program = '', ...args] = command
  const { status, stderr } = spawnSync(program, args, { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
}

afterEach(() => {
  feed(['nft', 'flush', 'ruleset'])
})

async function find(forwards = false): Promise<FirewallReport> {
  return await findFirewalls({ run: toolRunner({ timeoutMs: HANG_MS }), legacyTables, pods: [ownDevices('npl')], forwards })
}

/** "input by FILTER: policy of INPUT, ipv4" */
function told({ findings, unread }: FirewallReport): string[] {
  return [
    ...unread,
    ...findings.map(
      ({ what, families, table, chain, by }) => `${what.split(' (')[0] ?? ''}: ${table}, ${by} of ${chain}, ${families.join()}`,
    ),
  ]
}

const TO_NODE = 'packets of pods to processes of this node'
const FROM_NODE = "packets of this node's processes to its pods"
const TRANSLATED = 'packets to host ports of pods'

describe('firewalls with their own rules', () => {
  test('none', async () => {
    expect(told(await find())).toEqual([])
  })

  test('docker', async () => {
    feed(['iptables-nft-restore'], DOCKER)
    expect(told(await find())).toEqual([])
    expect(told(await find(true))).toEqual([
      'packets of pods to other machines: iptables-nft filter, policy of FORWARD, ipv4',
      'packets of other machines to pods: iptables-nft filter, policy of FORWARD, ipv4',
    ])
    feed(['iptables-nft', '-t', 'nat', '-N', 'CNI-HOSTPORT-DNAT'])
    expect(told(await find())).toEqual([`${TRANSLATED}: iptables-nft filter, policy of FORWARD, ipv4`])
    feed(['iptables-nft', '-I', 'DOCKER-USER', '-i', 'npl+', '-j', 'ACCEPT'])
    feed(['iptables-nft', '-I', 'DOCKER-USER', '-o', 'npl+', '-j', 'ACCEPT'])
    expect(told(await find(true))).toEqual([])
  })

  test('ufw', async () => {
    feed(['iptables-nft-restore'], ufw(4))
    feed(['ip6tables-nft-restore'], ufw(6))
    const both = ['iptables-nft filter, policy of %, ipv4', 'ip6tables-nft filter, policy of %, ipv6']
    const of = (what: string, chain: string): string[] => both.map((text) => `${what}: ${text.replace('%', chain)}`)
    expect(told(await find())).toEqual(of(TO_NODE, 'INPUT'))
    expect((await find()).findings[0]?.remedy).toContain('ufw allow from')
    feed(['iptables-nft', '-A', 'ufw-user-input', '-s', '10.1.0.0/16', '-j', 'ACCEPT'])
    expect(told(await find())[0]).toBe(`${TO_NODE}: ip6tables-nft filter, policy of INPUT, ipv6`)
  })

  test('firewalld', async () => {
    feed(['nft', '-f', '-'], FIREWALLD)
    const found = await find()
    expect(told(found)).toEqual([`${TO_NODE}: nft inet firewalld, rule of filter_IN_public, ipv4,ipv6`])
    expect(found.findings[0]?.remedy).toContain('firewall-cmd --permanent --zone=trusted')
    expect(told(await find(true)).slice(1)).toEqual([
      'packets of pods to other machines: nft inet firewalld, rule of filter_FWD_public, ipv4,ipv6',
      'packets of other machines to pods: nft inet firewalld, rule of filter_FWD_public, ipv4,ipv6',
    ])
  })

  test('firewalld that trusts the pods', async () => {
    feed(['nft', '-f', '-'], FIREWALLD)
    feed(['nft', 'insert rule inet firewalld filter_INPUT_ZONES ip saddr 10.1.0.0/16 accept'])
    feed(['nft', 'insert rule inet firewalld filter_INPUT_ZONES iifname "npl*" ip6 saddr fd00::/16 accept'])
    expect(told(await find())).toEqual([])
  })

  test('a firewall of no known program, in both kinds of tables at once', async () => {
    feed(['nft', 'add table inet mine; add chain inet mine out { type filter hook output priority 0; policy drop; }'])
    feed(['nft', 'add rule inet mine out oifname vmap { "lo" : accept, "eth0" : accept }'])
    feed(['iptables-nft', '-A', 'INPUT', '-p', 'tcp', '-m', 'multiport', '--dports', '22,80', '-j', 'ACCEPT'])
    feed(['iptables-nft', '-A', 'INPUT', '-m', 'comment', '--comment', 'all "else" -j ACCEPT', '-j', 'REJECT'])
    expect(told(await find())).toEqual([
      `${TO_NODE}: iptables-nft filter, rule of INPUT, ipv4`,
      `${FROM_NODE}: nft inet mine, policy of out, ipv4,ipv6`,
    ])
  })

  test('what may be accepted is no finding', async () => {
    feed(['iptables-nft', '-A', 'INPUT', '-m', 'mark', '--mark', '0x1', '-j', 'ACCEPT'])
    feed(['iptables-nft', '-P', 'INPUT', 'DROP'])
    expect(told(await find())).toEqual([])
    feed(['iptables-nft', '-P', 'INPUT', 'ACCEPT'])
  })
})

test('without tools there is no finding, with one that fails its words', async () => {
  const absent = await findFirewalls({ run: () => Promise.resolve(undefined), legacyTables, pods: [ownDevices('npl')], forwards: true })
  expect(absent).toEqual({ findings: [], tables: [], unread: [] })
  const failing = await findFirewalls({
    run: ([tool]) => Promise.reject(new Error(`${tool ?? ''} is broken`)),
    legacyTables,
    pods: [ownDevices('npl')],
    forwards: true,
  })
  expect(failing.unread).toEqual([
    'nft: nft is broken',
    'iptables-nft: iptables-nft-save is broken',
    'ip6tables-nft: ip6tables-nft-save is broken',
  ])
})
