// SPDX-License-Identifier: Apache-2.0
/** Policy and translation: what is asked about is what comes out of it. Layer: test. */
import { tcp } from '../../../../testkit/packets/packet.ts'
import type { FlowWanted, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { DENIED, opens, podSide, policy, ruleName, toPort } from './policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NAT_PORT, NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 44_000

function services(f: Family): PacketCase[] {
  const [c, front, back] = [at(f.secondPod, PORT), at(f.vip, 80), at(f.pod, 8080)]
  const syn: Step = { say: 'SYN', through: 'from_workload', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' }
  const views = (rest: Partial<FlowWanted>): readonly FlowWanted[] => [
    { proto: 6, from: c, to: front, ...rest },
    { proto: 6, from: back, to: c, ...rest },
  ]
  const outside = { c: at(f.client, PORT), front: at(f.node, NODE_PORT) }
  const backends = [{ addr: f.pod, port: 8080 }]
  return [
    {
      name: `${f.name}: rules see a service's flow behind its translation`,
      given: {
        backends,
        policies: [
          ...opens(8080),
          policy('out', {
            of: 'second',
            egress: [{ ...toPort(8080), destination: { ...podSide('pod'), ports: [{ from: 8080, to: 8080 }] } }],
          }),
        ],
      },
      steps: [{ ...syn, flows: views({ rules: { ingress: ruleName('in', 'ingress', 0), egress: ruleName('out', 'egress', 0) } }) }],
    },
    {
      name: `${f.name}: rules for a service's own port mean nothing`,
      given: { backends, policies: opens(80) },
      steps: [{ ...syn, ...DENIED, flows: views({ gone: true }) }],
    },
    {
      name: `${f.name}: from outside by a node port, too`,
      given: { backends, policies: opens(8080) },
      steps: [
        { say: 'let in', through: 'from_host', packet: tcp(outside.c, outside.front, { flags: 'S' }), action: 'redirect' },
        {
          say: 'closed meanwhile',
          through: 'from_host',
          packet: tcp(outside.c, outside.front, { flags: 'A' }),
          policies: opens(80),
          ...DENIED,
        },
        {
          say: 'its answer, which nothing but the flow could translate',
          through: 'from_workload',
          packet: tcp(back, outside.c, { flags: 'A' }),
          ...DENIED,
        },
        { say: 'the client again', through: 'from_host', packet: tcp(outside.c, outside.front, { flags: 'A' }), ...DENIED },
      ],
    },
    {
      name: `${f.name}: a backend reaches itself by its service`,
      given: { backends, policies: [policy('closed', { of: 'pod', ingress: [], egress: [] })] },
      steps: [{ say: 'SYN', through: 'from_workload', packet: tcp(at(f.pod, PORT), front, { flags: 'S' }), action: 'redirect' }],
    },
    {
      name: `${f.name}: a second flow with a service's ends is asked about, in its own zone`,
      given: { backends, policies: opens(8080) },
      steps: [
        { say: 'by the service', through: 'from_host', packet: tcp(outside.c, outside.front, { flags: 'S' }), action: 'redirect' },
        {
          say: 'directly, from the same port',
          through: 'from_host',
          packet: tcp(outside.c, back, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.client, NAT_PORT), back, { flags: 'S', ttl: 63 }),
          flows: [{ proto: 6, from: outside.c, to: back, lane: 1, rules: { ingress: ruleName('in', 'ingress', 0) } }],
        },
        {
          say: 'closed meanwhile',
          through: 'from_host',
          packet: tcp(outside.c, back, { flags: 'A' }),
          policies: opens(80),
          ...DENIED,
        },
        { say: 'again', through: 'from_host', packet: tcp(outside.c, back, { flags: 'S' }), ...DENIED },
        { say: 'its answer', through: 'from_workload', packet: tcp(back, at(f.client, NAT_PORT), { flags: 'A' }), ...DENIED },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(services)
