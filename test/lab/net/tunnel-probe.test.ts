// SPDX-License-Identifier: Apache-2.0
/** What nodes say of a network that loses the tunnel's packets, with real agents. a and b are neighbours, the way to c
 * is by a router. Root. Layer: test. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { listAt, textAt } from '../../../lab/raw.ts'
import { mustRun } from '../../../lab/processes/command.ts'
import { FAMILIES, nodeAddress, NODES, World, type NodeName, type Wishes } from './world.ts'

/** Three rounds of ten seconds and what is under way, or programs that are loaded anew and a round. */
const SOON = { timeout: 100_000, interval: 500 }
const ROUNDS_MS = 50_000
const world = new World('tunprobe')

function wishes(bpfTunnelUDPChecksum: 'Enabled' | 'Disabled' = 'Disabled'): Wishes {
  return { pools: { vxlanMode: 'Always' }, endpoints: ['c-1'], felix: { bpfTunnelUDPChecksum } }
}

beforeAll(() => world.up(wishes()))
afterAll(() => world.down())
afterEach(() => nft('flush ruleset'))

async function nft(...lines: readonly string[]): Promise<void> {
  await mustRun(['ip', 'netns', 'exec', world.lab.topology.fabric.netns, 'nft', lines.join('; ')])
}

const HEADERS = { 4: 'ip', 6: 'ip6' } as const

/** Of the tunnel's packets to node c, from it, or both. Some kernels show those of a bridge to the router as well. */
async function lose(what: string, ends: readonly ('saddr' | 'daddr')[] = ['saddr', 'daddr']): Promise<void> {
  const ways = FAMILIES.flatMap((family) => ends.map((end) => `${HEADERS[family]} ${end} ${nodeAddress('c', family)}`))
  await nft(
    'add table inet wire',
    'add chain inet wire forward { type filter hook forward priority 0; }',
    ...ways.map((way) => `add rule inet wire forward ${way} udp dport 4789 ${what} drop`),
  )
}

/** What the node's condition says; empty: it holds. */
async function said(node: NodeName): Promise<string> {
  const { text } = await world.lab.agents.get({ node, port: world.lab.topology.healthPort, path: '/readiness' })
  const report: unknown = JSON.parse(text)
  const condition = listAt(report, 'conditions').find((one) => textAt(one, 'name') === 'network.tunnel')
  if (condition === undefined) throw new Error(`node ${node} has no such condition`)
  return textAt(condition, 'reason') ?? ''
}

async function all(of: (text: string) => unknown): Promise<unknown> {
  return await Promise.all(NODES.map(async (node) => of(await said(node))))
}

/** Of both families, both directions, each once. */
function losses(text: string): string[] {
  return [...new Set(text.match(/(to and from|from|to) node . over IPv[46]: [^;]*? are lost/g))].sort()
}

function both(nodes: readonly NodeName[], what: string, direction = 'to and from'): string[] {
  return nodes.flatMap((node) => ['IPv4', 'IPv6'].map((family) => `${direction} node ${node} over ${family}: ${what} are lost`))
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('the condition holds in a network that loses nothing', async () => {
  await wait(ROUNDS_MS)
  expect(await all((text) => text)).toEqual(['', '', ''])
})

test('both sides report that a network drops packets without a checksum, until they have one', { timeout: 250_000 }, async () => {
  await lose('udp checksum 0')
  const what = 'packets of the tunnel without a UDP checksum'
  await expect.poll(() => all(losses), SOON).toEqual([both(['c'], what), both(['c'], what), both(['a', 'b'], what)])
  expect(await said('a')).toMatch(/^to and from node c .* since \d{4}-.*Z: set bpfTunnelUDPChecksum: Enabled in FelixConfiguration/)
  world.put(wishes('Enabled'))
  await expect.poll(() => all((text) => text), SOON).toEqual(['', '', ''])
})

test('nodes report a network that drops large packets in silence, with their size', { timeout: 200_000 }, async () => {
  await lose('meta length > 1400')
  const what = 'large packets of the tunnel (1500 bytes)'
  await expect.poll(() => all(losses), SOON).toEqual([both(['c'], what), both(['c'], what), both(['a', 'b'], what)])
  await nft('flush ruleset')
  await expect.poll(() => all((text) => text), SOON).toEqual(['', '', ''])
})

test('both sides report that all packets are lost one way, while the agent at the other end runs', { timeout: 200_000 }, async () => {
  await lose('', ['daddr'])
  const what = 'all packets of the tunnel'
  await expect.poll(() => all(losses), SOON).toEqual([both(['c'], what, 'to'), both(['c'], what, 'to'), both(['a', 'b'], what, 'from')])
  // an agent that is away says nothing of the network
  await world.lab.agents.stop('a', 'SIGKILL')
  await expect.poll(async () => losses(await said('c')), SOON).toEqual(both(['b'], what, 'from'))
})
