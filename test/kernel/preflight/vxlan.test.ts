// SPDX-License-Identifier: Apache-2.0
/** Three nodes behind a router, which loses what it is told to: the tunnel's packets are sent and seen for real.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { felix, node as nodeObject } from '../agent/manifests.ts'
import { blocking, codes, look, type Looked } from './look.ts'

const NAMES = ['a', 'b', 'c'] as const
type Name = (typeof NAMES)[number]
const address = (name: Name): string => `10.9.${NAMES.indexOf(name)}.2`
const address6 = (name: Name): string => `fd09:${NAMES.indexOf(name)}::2`

let nodes: ReadonlyMap<Name, ScratchNode>
let router: ScratchNode

async function plugged(name: Name): Promise<[Name, ScratchNode]> {
  const node = await ScratchNode.make()
  const at = NAMES.indexOf(name)
  execFileSync('ip', ['link', 'add', `rt-${name}`, 'type', 'veth', 'peer', 'name', `up-${name}`])
  router.take(`rt-${name}`)
  router.sh(`
    ip addr add 10.9.${at}.1/24 dev rt-${name}
    ip addr add fd09:${at}::1/64 dev rt-${name} nodad
    ip link set rt-${name} up`)
  node.take(`up-${name}`)
  node.sh(`
    ip link set up-${name} name eth0
    ip addr add ${address(name)}/24 dev eth0
    ip addr add ${address6(name)}/64 dev eth0 nodad
    ip link set eth0 up
    ip route add default via 10.9.${at}.1
    ip -6 route add default via fd09:${at}::1`)
  return [name, node]
}

beforeEach(async () => {
  router = await ScratchNode.make()
  nodes = new Map(await Promise.all(NAMES.map(plugged)))
  router.sh(`
    echo 1 > /proc/sys/net/ipv4/ip_forward
    echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    nft 'add table inet router; add chain inet router forward { type filter hook forward priority 0; }'`)
})

afterEach(async () => {
  for (const node of [...nodes.values(), router]) await node[Symbol.asyncDispose]()
})

function lose(from: Name, to: Name): void {
  router.sh(`nft 'add rule inet router forward ip saddr ${address(from)} ip daddr ${address(to)} udp dport 4789 drop'`)
}

function node(name: Name): ScratchNode {
  const found = nodes.get(name)
  if (found === undefined) throw new Error(name)
  return found
}

interface Ask {
  readonly late?: Partial<Record<Name, number>>
  readonly families?: readonly ((name: Name) => string)[]
}

async function lookAll({ late = {}, families = [address] }: Ask = {}): Promise<Record<Name, Looked>> {
  const lines = NAMES.map((name) => [name, ...families.map((of) => of(name))].join(' '))
  const asked = NAMES.map(async (name) => {
    const file = join(node(name).folder, 'peers')
    writeFileSync(file, `${lines.join('\n')}\n`)
    await sleep(late[name] ?? 0)
    return await look(node(name), '--group=vxlan', `--node=${name}`, `--peers=${file}`, '--run=1')
  })
  const [a, b, c] = await Promise.all(asked)
  if (a === undefined || b === undefined || c === undefined) throw new Error('three answers are asked for')
  return { a, b, c }
}

test('nodes that reach each other say so, whatever has the port there, and soon', async () => {
  node('b').sh('ip link add flannel.1 type vxlan id 1 dstport 4789 dev eth0; ip link set flannel.1 up')
  node('c').sh('iptables-nft -A INPUT -p udp --dport 4789 -j DROP')
  const holder = node('a').spawn([process.execPath, '-e', 'require("dgram").createSocket("udp4").bind(4789, () => console.log("bound"))'])
  await new Promise((resolve) => holder.stdout?.once('data', resolve))
  try {
    // less than those wait that are not answered
    await withinBestOfThree(14_000, async () => {
      const started = performance.now()
      const found = await lookAll({ families: [address, address6] })
      expect(codes(found.a)).toEqual([expect.stringMatching(/^vxlan-port-socket 4789 program .+ \(process \d+\)$/)])
      expect(codes(found.b)).toEqual(['vxlan-port-device 4789 flannel.1'])
      expect(codes(found.c)).toEqual([])
      expect([...blocking(found.a), ...blocking(found.b)]).toEqual([])
      return performance.now() - started
    })
  } finally {
    holder.kill('SIGKILL')
  }
})

test('where Netplane runs nothing of it is in the way, and it lets the packets of others pass', async () => {
  const c = node('c')
  c.put('nodes.json', [nodeObject('n1', address('c'), '10.1.1.0/24'), nodeObject('n2', address('a'), '10.1.2.0/24')])
  c.put('felix.json', [felix(c.cgroup)])
  await c.agent().event('dataplane.ready')
  await expect.poll(() => c.sh('ip -o link')).toContain('netplane-vxlan')
  const found = await lookAll()
  expect(codes(found.c)).toEqual([])
  expect([...codes(found.a), ...codes(found.b)]).toEqual([])
  // its connect-time programs are at a cgroup of the test
  const sysFs = join(c.folder, 'sys-fs')
  mkdirSync(sysFs)
  symlinkSync('/sys/fs/bpf', join(sysFs, 'bpf'))
  symlinkSync(c.cgroup, join(sysFs, 'cgroup'))
  const groups = ['kernel', 'devices', 'others'].map((group) => `--group=${group}`)
  expect(codes(await look(c, ...groups, `--node-addresses=${address('c')}`, `--sys-fs=${sysFs}`))).toEqual([])
})

test('what is lost is told by both ends, by the way and the family, while a peer begins later', async () => {
  lose('a', 'b')
  lose('a', 'c')
  lose('c', 'a')
  const found = await lookAll({ late: { b: 4000 }, families: [address, address6] })
  expect(codes(found.a).sort()).toEqual([`vxlan-lost-from c ${address('c')} 4789`, `vxlan-lost-to b ${address('b')} 4789`])
  expect(codes(found.b)).toEqual([`vxlan-lost-from a ${address('a')} 4789`])
  expect(codes(found.c)).toEqual([`vxlan-lost-from a ${address('a')} 4789`])
  expect(new Set(blocking(found.a))).toEqual(new Set(['vxlan-lost-from', 'vxlan-lost-to']))
})

test('what a firewall of the node itself keeps from leaving', async () => {
  node('a').sh('iptables-nft -A OUTPUT -p udp --dport 4789 -j DROP')
  const found = await lookAll()
  expect(codes(found.a)).toEqual(['vxlan-send 4789 a firewall of this node drops it (EPERM)'])
  expect(codes(found.b)).toEqual([`vxlan-lost-from a ${address('a')} 4789`])
})

test('a node that is not among the peers cannot look', () => {
  const file = join(node('a').folder, 'peers')
  writeFileSync(file, 'b 10.9.1.2\n')
  const log = join(node('a').folder, 'log')
  const looked = node('a').command('preflight', '--group=vxlan', '--node=a', `--peers=${file}`, `--termination-log=${log}`)
  expect(looked.status).toBe(2)
  expect(looked.output).toContain('this node, a, is not among them')
  expect(readFileSync(log, 'utf8')).toBe('vxlan: --peers: this node, a, is not among them')
})
