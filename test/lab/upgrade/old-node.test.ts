// SPDX-License-Identifier: Apache-2.0
/** The agent begins on nodes of an older version, under traffic: nothing is lost, and what that version left decides
 * no more. MATRIX=whole: in each mode by each way between nodes, as `make soak` has it. Layer: test. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Lab } from '../../../lab/lab.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { startFlow, startRequests } from '../../../lab/traffic/traffic.ts'
import { waitFor } from '../../../lab/wait.ts'
import { Manifests, pod } from '../cluster.ts'
import { OBJECTS, RULES, tcp, waysFrom, type Way } from '../proxied.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { DENIED_PORT, leftOn, makeOld, type OldNode } from './old-node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const agentCommand = programCommand('agent')
/** Ways stay flannel's. */
const LOCAL = ['--cni-conf-dir', '/run/cni/net.d', '--cni-bin-dir', '/run/cni/bin', '--cni-local']
const udp = (address: string, port: number): Endpoint => ({ proto: 'udp', address, port })
const NODES: readonly OldNode[] = [
  {
    name: 'a',
    addresses: ['172.31.0.1', 'fd00:31::1'],
    own: ['10.245.1.0/24', 'fd00:245:1::/64'],
    macs: ['66:0a:f5:01:00:01', '66:0a:f5:01:06:01'],
    other: [
      ['10.245.2.0/24', '172.31.0.2', '66:0a:f5:01:00:02'],
      ['fd00:245:2::/64', 'fd00:31::2', '66:0a:f5:01:06:02'],
    ],
  },
  {
    name: 'b',
    addresses: ['172.31.0.2', 'fd00:31::2'],
    own: ['10.245.2.0/24', 'fd00:245:2::/64'],
    macs: ['66:0a:f5:01:00:02', '66:0a:f5:01:06:02'],
    other: [
      ['10.245.1.0/24', '172.31.0.1', '66:0a:f5:01:00:01'],
      ['fd00:245:1::/64', 'fd00:31::1', '66:0a:f5:01:06:01'],
    ],
  },
]
/** Between the nodes by pods' own addresses, in both directions, of both families. */
const DIRECT = [
  { from: 'shell-a', to: ['10.245.2.11', 'fd00:245:2::11'].flatMap((address) => [tcp(address, 8080), udp(address, 8080)]) },
  { from: 'shell-b', to: ['10.245.1.11', 'fd00:245:1::11'].flatMap((address) => [tcp(address, 8080), udp(address, 8080)]) },
]
/** The same from the nodes themselves. */
const FROM_NODES = [
  { from: 'node/a', to: ['10.245.2.11', 'fd00:245:2::11'].map((address) => tcp(address, 8080)) },
  { from: 'node/b', to: ['10.245.1.11', 'fd00:245:1::11'].map((address) => tcp(address, 8080)) },
]
/** After the last node is done: later than anything that is put off. */
const REST_MS = 3000

/** A process of each node; one of kube-proxy's is to run there as long as it is called so. */
function hostsOf(label: string): readonly object[] {
  return NODES.map(({ name }) => ({
    ...pod(`kube-system/host-${name}`, name),
    metadata: { namespace: 'kube-system', name: `host-${name}`, labels: { 'k8s-app': label } },
  }))
}

const settings = (bpfEnabled: boolean): object => ({
  ...{ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' } },
  // as an import writes it
  spec: { bpfEnabled, vxlanVNI: 4096 },
})

/** As an import writes them where nodes reach each other in the tunnel. */
const TUNNELLED: readonly object[] = [
  ...['10.245.0.0/16', 'fd00:245::/32'].map((cidr, at) => ({
    ...{ apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: `pods-${at}` } },
    spec: { cidr, vxlanMode: 'Always', natOutgoing: true },
  })),
  ...NODES.map(({ name, addresses, own, macs: [v4, v6] }) => ({
    ...{ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name } },
    spec: {
      ...{ addresses, podCIDRs: own },
      ...{ vxlanTunnelMACAddr: v4, vxlanTunnelMACAddrV6: v6 },
    },
  })),
]

/** A network between nodes that knows nodes' addresses alone. */
const NO_PODS = `table bridge network {
  chain between {
    type filter hook forward priority 0;
    ip saddr 10.245.0.0/16 drop
    ip6 saddr fd00:245::/32 drop
  }
}`

/** What a node of ours is to be, and what carries packets between the old ones. */
const EVERY = [
  ['to Standard mode', { isBpf: false, between: 'plain' }],
  ['to BPF mode', { isBpf: true, between: 'plain' }],
  ['to Standard mode, nodes in the tunnel', { isBpf: false, between: 'tunnel' }],
  ['to BPF mode, nodes in the tunnel', { isBpf: true, between: 'tunnel' }],
  ['to Standard mode, nodes in the tunnel of flannel', { isBpf: false, between: 'flannel' }],
] as const
// in the gate the one in which most of a node changes
test.each(ofMatrix(EVERY, [EVERY[3]]))(
  '%s: streams between nodes, through services and from outside, while one node after the other begins',
  async (_, { isBpf, between }) => {
    const tunnelled = between === 'tunnel'
    using manifests = new Manifests([
      ...[...OBJECTS, ...hostsOf(isBpf ? 'other' : 'kube-proxy'), settings(isBpf)],
      ...(tunnelled ? TUNNELLED : []),
    ])
    const name = `told${isBpf ? 'b' : 's'}${between}`
    const command = [...agentCommand, ...(between === 'flannel' ? LOCAL : [])]
    await using lab = await Lab.up({ name, resources: manifests.dir, agentCommand: command, plain: true })
    for (const node of NODES) await makeOld(lab, node, between)
    if (between !== 'plain') await lab.mustRun('fabric', ['nft', '-f', '-'], { input: NO_PODS })
    for (const { on, restore, input } of [RULES.nft, RULES.nftables]) await lab.mustRun(`node/${on}`, restore.split(' '), { input })
    const addresses = (): Promise<readonly string[]> =>
      Promise.all(lab.topology.pods.map(({ key }) => lab.mustRun(key, ['ip', '-br', 'addr', 'show', 'dev', 'eth0'])))
    const before = await addresses()
    const askNode = async (): Promise<{ readonly ok: number }> =>
      await startRequests(lab, { from: 'shell-b', to: tcp('172.31.0.2', DENIED_PORT), count: 3, timeoutMs: 1000 }).result
    expect(await askNode()).toMatchObject({ ok: 0 })
    for (const { name } of NODES) expect(await leftOn(lab, name)).toContain('npl-FORWARD')

    const ways = [...DIRECT, ...FROM_NODES, ...NODES.flatMap(({ name }) => waysFrom(name === 'a' ? 'a' : 'b'))]
    // the kernel ends what it masquerades by another device from then on: docs/upgrade-node.md
    const isMasqueraded = ({ from, to }: Way): boolean => from.startsWith('node/') && to.some(({ port }) => port === 80)
    const lasting = tunnelled ? ways.filter((way) => !isMasqueraded(way)) : ways
    const flows = await Promise.all(lasting.map((way) => startFlow(lab, { ...way, rate: 50 })))
    for (const { name } of NODES) {
      await lab.agents.start(name)
      await lab.agents.waitReady(name)
      const isRemoved = (): true | undefined => (lab.log(name).includes('"leftovers.removed"') ? true : undefined)
      expect(await waitFor(isRemoved, { timeoutMs: HANG_MS }), lab.log(name)).toBe(true)
      expect(lab.log(name)).toMatch(/"dataplane.ready".*"leftovers.removed"/s)
      expect(await leftOn(lab, name)).toBe('')
    }
    await sleep(REST_MS)
    expect(await askNode()).toMatchObject({ ok: 3 })
    for (const { from, to } of ways) {
      const fresh = await Promise.all(to.slice(0, 2).map((one) => startRequests(lab, { from, to: one, count: 20 }).result))
      for (const result of fresh) expect(result, JSON.stringify(result)).toMatchObject({ ok: 20, refused: 0, reset: 0, timeouts: 0 })
    }
    const streams = (await Promise.all(flows.map((flow) => flow.stop()))).flatMap((flow) => flow.streams)
    expect(streams).toHaveLength(lasting.flatMap(({ to }) => to).length)
    for (const stream of streams) expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
    expect(await addresses()).toEqual(before)
  },
  180_000,
)
