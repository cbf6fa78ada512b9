// SPDX-License-Identifier: Apache-2.0
/** What names of ports open, by the compiled tables. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import { PolicyPipeline } from '#agent/compile/policy/policy-pipeline.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { kubernetesPolicy, pod, snapshotOf, v3 } from '../../../support/build.ts'

const TWICE = [
  { name: 'web', port: 8080 },
  { name: 'web', port: 8081 },
  { name: 'web', port: 8082, protocol: 'UDP' },
]

test.each(['ingress', 'egress'] as const)(
  '%s: of a name that an endpoint has twice in one protocol, the first port is open',
  (direction) => {
    const rules = [{ ports: [{ port: 'web' }, { port: 'web', protocol: 'UDP' }] }]
    const snapshot = snapshotOf([
      pod('shop/client', { node: 'n1', ips: ['10.0.0.1'] }),
      pod('shop/server', { node: 'n1', ips: ['10.0.0.2'], ports: TWICE }),
      v3('HostEndpoint', 'eth0', { node: 'n1', interfaceName: 'eth0', expectedIPs: ['192.0.2.1'], ports: TWICE }),
      kubernetesPolicy('shop/p', direction === 'ingress' ? { ingress: rules } : { policyTypes: ['Egress'], egress: rules }),
    ])
    const tables = new PolicyTables()
    tables.apply(atOnce(new PolicyPipeline('n1').all(snapshot)))
    const asked = snapshot.pods.get(direction === 'ingress' ? 'shop/server' : 'shop/client')
    const opened = (to: string): readonly string[] =>
      [6, 17].flatMap((protocol) =>
        [8080, 8081, 8082].flatMap((dport) => {
          const packet = { src: parseAddr('10.0.0.1'), dst: parseAddr(to), protocol, sport: 40_000, dport, icmp: undefined }
          const { action } = judgeByTables(tables, packet, { direction })
          expect(asked && new Evaluator(snapshot).pod(asked, packet, { direction }).action).toBe(action)
          return action === 'allow' ? [`${protocol}/${dport}`] : []
        }),
      )
    expect(opened('10.0.0.2')).toEqual(['6/8080', '17/8082'])
    if (direction === 'egress') expect(opened('192.0.2.1')).toEqual(['6/8080', '17/8082'])
  },
)
