// SPDX-License-Identifier: Apache-2.0
/** A kernel that hides a client behind the node's address may give it any port, that of the tunnel too: the client is
 * answered. Layer: test. */
import { expect, test } from 'vitest'
import { Lab } from '../../../lab/lab.ts'
import { startRequests } from '../../../lab/traffic/traffic.ts'
import { Manifests, node, pod } from '../cluster.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const agentCommand = programCommand('agent')
const NODES = { a: ['172.31.0.1', 'fd00:31::1'], b: ['172.31.0.2', 'fd00:31::2'] } as const
const PODS = { a: ['10.245.1.20', 'fd00:245:1::20'], b: ['10.245.2.20', 'fd00:245:2::20'] } as const
const OBJECTS = [
  { ...node('a', ...NODES.a), spec: { podCIDRs: ['10.245.1.0/24', 'fd00:245:1::/64'] } },
  { ...node('b', ...NODES.b), spec: { podCIDRs: ['10.245.2.0/24', 'fd00:245:2::/64'] } },
  pod('default/on-a', 'a', ...PODS.a),
  pod('default/on-b', 'b', ...PODS.b),
  {
    ...{ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' } },
    spec: { bpfEnabled: false, bpfProxyIptablesCleanupEnabled: false },
  },
]
/** As a kube-proxy does it, whose choice of a port is made here. */
const RULES = (['ip', 'ip6'] as const)
  .map((family, at) => {
    const to = (['a', 'b'] as const).map((on) => {
      const address = PODS[on][at] ?? ''
      return `udp dport ${on === 'a' ? 30_001 : 30_002} dnat to ${family === 'ip' ? address : `[${address}]`}:8080`
    })
    return `table ${family} proxy {
      chain in { type nat hook prerouting priority -100; ${to.join('; ')}; }
      chain out { type nat hook postrouting priority 100; ct status dnat meta l4proto udp masquerade to :4789; }
    }`
  })
  .join('\n')

test('a client is answered that has got the port of the tunnel, by pods of the node and of another', async () => {
  using manifests = new Manifests(OBJECTS)
  await using lab = await Lab.up({ name: 'thidden', resources: manifests.dir, agentCommand })
  for (const on of ['a', 'b'] as const) await lab.mustRun(`node/${on}`, ['nft', '-f', '-'], { input: RULES })
  const unanswered: string[] = []
  for (const address of [...NODES.a, ...NODES.b])
    for (const port of [30_001, 30_002]) {
      const { ok } = await startRequests(lab, { from: 'client', to: { proto: 'udp', address, port }, count: 1 }).result
      if (ok !== 1) unanswered.push(`${address} ${port}`)
    }
  expect(unanswered).toEqual([])
}, 120_000)
