// SPDX-License-Identifier: Apache-2.0
/** From Standard mode to BPF mode and back beside the rules of a real kube-proxy, under traffic: nothing is lost, and
 * new connections are served in each mode by the one whose they are. Layer: test. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Lab } from '../../lab/lab.ts'
import { startFlow, startRequests } from '../../lab/traffic/traffic.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Manifests } from './cluster.ts'
import { OBJECTS, RULES, service, waysFrom } from './proxied.ts'
import { programCommand } from '../../testkit/base/program.ts'

const agentCommand = programCommand('agent')
const NODES = ['a', 'b'] as const
const SAVED = { a: RULES.nft, b: RULES.nftables } as const
/** Longer than a flow's way is believed to be the same. */
const A_WHILE_MS = 1500

function settings(spec: object): object {
  return { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' }, spec }
}

/** As the agent's log says it last. */
function modeOf(log: string): boolean {
  return [...log.matchAll(/"field":"bpfEnabled","value":(true|false)/g)].at(-1)?.[1] === 'true'
}

test('open flows and new connections through changes of mode, both ways', async () => {
  const keeps = { bpfProxyIptablesCleanupEnabled: false }
  using manifests = new Manifests([...OBJECTS, settings({ ...keeps, bpfEnabled: false })])
  await using lab = await Lab.up({ name: 'tmode', resources: manifests.dir, agentCommand, plain: true })
  await lab.startAgents(true)
  // afterwards: an agent that begins beside such rules takes unknown connections for kube-proxy's for a minute
  for (const on of NODES) await lab.mustRun(`node/${on}`, SAVED[on].restore.split(' '), { input: SAVED[on].input })
  const ways = NODES.flatMap((on) => waysFrom(on).map((way) => ({ ...way, on })))
  const ask = async (): Promise<void> => {
    const asked = ways.flatMap(({ from, to }) => to.slice(0, 2).map((one) => startRequests(lab, { from, to: one, count: 20 })))
    for (const requests of asked) {
      const result = await requests.result
      expect(result, JSON.stringify(result)).toMatchObject({ ok: 20, refused: 0, reset: 0, timeouts: 0 })
    }
  }
  /** How many connections kube-proxy's rules have translated on each node. */
  const proxied = async (): Promise<readonly number[]> => {
    const count = async (on: 'a' | 'b'): Promise<number> => {
      const { stdout } = await lab.run(`node/${on}`, [
        'sh',
        '-c',
        'conntrack -L -p tcp 2>/dev/null; conntrack -f ipv6 -L -p tcp 2>/dev/null',
      ])
      return stdout.split('\n').filter((line) => line.includes('dport=32462') || / dst=(10\.97|fd00:97)/.test(line)).length
    }
    return await Promise.all(NODES.map(count))
  }
  const change = async (spec: { readonly bpfEnabled: boolean }): Promise<void> => {
    manifests.write([...OBJECTS, settings(spec)])
    const isApplied = (): true | undefined => (NODES.every((on) => modeOf(lab.log(on)) === spec.bpfEnabled) ? true : undefined)
    expect(await waitFor(isApplied, { timeoutMs: HANG_MS })).toBe(true)
    await sleep(A_WHILE_MS)
  }

  await ask()
  const first = await proxied()
  expect(
    first.every((count) => count > 0),
    String(first),
  ).toBe(true)
  const flows = await Promise.all(ways.map((way) => startFlow(lab, { ...way, rate: 50 })))
  for (const bpfEnabled of [true, false, true, false]) {
    const before = await proxied()
    await change({ ...keeps, bpfEnabled })
    await ask()
    const after = await proxied()
    if (bpfEnabled) expect(after).toEqual(before)
    else
      expect(
        after.every((count, at) => count > (before[at] ?? 0)),
        `${String(before)} ${String(after)}`,
      ).toBe(true)
  }
  await change({ bpfEnabled: true })
  const isRemoved = (): true | undefined => (NODES.every((on) => lab.log(on).includes('"kube-proxy.removed"')) ? true : undefined)
  expect(await waitFor(isRemoved, { timeoutMs: HANG_MS })).toBe(true)
  await ask()
  const streams = (await Promise.all(flows.map((flow) => flow.stop()))).flatMap((flow) => flow.streams)
  expect(streams).toHaveLength(52)
  for (const stream of streams) expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
}, 120_000)

/** As kube-proxy translates the node's datagrams to a service, hides them behind another port, and refuses others. */
const PROXY_RULES = [
  ['ip', '10.97.0.13', '10.245.2.11:8080'],
  ['ip6', 'fd00:97::13', '[fd00:245:2::11]:8080'],
].flatMap(([family = '', service = '', pod = '']) => [
  `add table ${family} proxy`,
  `add chain ${family} proxy output { type nat hook output priority -100 ; }`,
  `add rule ${family} proxy output ${family} daddr ${service} udp dport 80 meta mark set mark or 0x4000 dnat to ${pod}`,
  `add chain ${family} proxy refuse { type filter hook output priority 0 ; }`,
  `add rule ${family} proxy refuse ct state new ${family} daddr ${service} reject`,
  `add chain ${family} proxy hidden { type nat hook postrouting priority 100 ; }`,
  `add rule ${family} proxy hidden mark and 0x4000 == 0x4000 masquerade random`,
])

test('datagrams of a node to a service lose no answer while a kube-proxy that comes clears connections', async () => {
  const datagrams = service('datagrams', 13, { protocol: 'UDP', pods: 11 })
  const spec = { nodeName: 'a', hostNetwork: true, containers: [{ name: 'c', image: 'i' }] }
  const metadata = { name: 'kube-proxy-a', namespace: 'kube-system', labels: { 'k8s-app': 'kube-proxy' } }
  const proxy = { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } }
  using manifests = new Manifests([...OBJECTS, ...datagrams])
  await using lab = await Lab.up({ name: 'tkept', resources: manifests.dir, agentCommand, plain: true })
  await lab.startAgents(true)
  const to = ['10.97.0.13', 'fd00:97::13'].flatMap((address) =>
    Array.from({ length: 8 }, () => ({ proto: 'udp', address, port: 80 }) as const),
  )
  const flow = await startFlow(lab, { from: 'node/a', to, rate: 200 })
  manifests.write([...OBJECTS, ...datagrams, proxy])
  expect(await waitFor(() => (lab.log('a').includes('"flows.kept"') ? true : undefined), { timeoutMs: HANG_MS })).toBe(true)
  await lab.mustRun('node/a', ['nft', '-f', '-'], { input: `${PROXY_RULES.join('\n')}\n` })
  let cleared = 0
  for (let turn = 0; turn < 100; turn++) {
    for (const [family, address] of [
      ['ipv4', '10.97.0.13'],
      ['ipv6', 'fd00:97::13'],
    ] as const) {
      const { status } = await lab.run('node/a', ['conntrack', '-f', family, '-D', '-p', 'udp', '--orig-dst', address])
      if (status === 0) cleared++
    }
    await sleep(20)
  }
  expect(cleared).toBeGreaterThan(1)
  const { streams } = await flow.stop()
  for (const stream of streams) expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, errors: {} })
}, 120_000)
