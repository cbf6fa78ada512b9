// SPDX-License-Identifier: Apache-2.0
/** Services that are served to pods alone: for whatever else they are kube-proxy's, before a change of mode and after.
 * Layer: test. */
import { FRONTEND_PODS } from '#lib/base/bpf-constants.ts'
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { DENIED, policy } from '../policy/policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

function forFamily(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const pod = at(f.pod, 8080)
  const backends = [{ addr: f.pod, port: 8080 }]
  const bpf = { backends, frontends: [at(f.bareVip, 80)] }
  const standard = { ...bpf, flags: FRONTEND_PODS }
  const kernels = { action: 'pass', out: 'same' } as const
  const asks = (say: string, flags: string, more: Partial<Step> = {}): Step => ({
    say,
    through: 'from_host',
    packet: tcp(c, front, { flags }),
    ...kernels,
    ...more,
  })
  const answers = (say: string, flags: string, more: Partial<Step> = {}): Step => ({
    say,
    through: 'to_host',
    packet: tcp(front, c, { flags }),
    ...kernels,
    ...more,
  })
  return [
    {
      name: `${f.name}: Standard mode: a connection to a node port is kube-proxy's, and stays so when the mode is BPF`,
      given: standard,
      steps: [
        asks('SYN', 'S'),
        asks('the SYN once more', 'S'),
        answers('SYN-ACK', 'SA'),
        asks('ACK', 'A'),
        asks('data after the change', 'PA', { given: bpf, age: A_WHILE }),
        answers('and its answer', 'PA', { age: A_WHILE }),
        {
          say: 'a new connection',
          through: 'from_host',
          packet: tcp(at(f.client, PORT + 1), front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT + 1), pod, { flags: 'S', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: Standard mode: attempts and datagrams without an answer move when the mode is BPF`,
      given: standard,
      steps: [
        asks('SYN', 'S'),
        {
          say: 'the SYN once more, after the change',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
          given: bpf,
          age: A_WHILE,
        },
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'x' }), ...kernels, given: standard },
        { say: 'another', through: 'from_host', packet: udp(c, front, { payload: 'x' }), ...kernels, age: A_WHILE },
        {
          say: 'after the change',
          through: 'from_host',
          packet: udp(c, front, { payload: 'x' }),
          action: 'redirect',
          out: udp(c, pod, { payload: 'x', ttl: 63 }),
          given: bpf,
          age: A_WHILE,
        },
      ],
    },
    {
      name: `${f.name}: Standard mode: datagrams to a node port stay kube-proxy's when the mode is BPF`,
      given: standard,
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'x' }), ...kernels },
        { say: 'answer', through: 'to_host', packet: udp(front, c, { payload: 'x' }), ...kernels },
        { say: 'after the change', through: 'from_host', packet: udp(c, front, { payload: 'x' }), ...kernels, given: bpf, age: A_WHILE },
      ],
    },
    {
      name: `${f.name}: Standard mode: a connection that began in BPF mode goes on as it began`,
      given: bpf,
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'ACK after the change',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A' }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'A', ttl: 63 }),
          given: standard,
          age: A_WHILE,
        },
        { say: 'a new connection', through: 'from_host', packet: tcp(at(f.client, PORT + 1), front, { flags: 'S' }), ...kernels },
      ],
    },
    {
      name: `${f.name}: Standard mode: connections from before the agent are kube-proxy's, however long it runs`,
      given: standard,
      steps: [asks('data', 'PA', { age: A_WHILE }), answers('its answer', 'A')],
    },
    {
      name: `${f.name}: Standard mode: data without an answer is no open connection`,
      given: standard,
      steps: [
        asks('data', 'A'),
        asks('data, later than an attempt lasts', 'A', { given: bpf, age: 6000, action: 'drop', reason: 'DROP_NO_FLOW' }),
        asks('data', 'A', { given: standard }),
        answers('its answer', 'A'),
        asks('data, as late again', 'A', { given: bpf, age: 6000 }),
      ],
    },
    {
      name: `${f.name}: Standard mode: what a pod sends to a service is translated here`,
      given: standard,
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(at(f.secondPod, PORT), at(f.bareVip, 80), { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.secondPod, PORT), pod, { flags: 'S', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: Standard mode: rules of the host ask of node ports what passes through, and of its other ports what is for it`,
      given: { ...standard, policies: [policy('closed', { of: HOST, ingress: [] })] },
      steps: [
        asks('SYN to the node port', 'S'),
        { say: 'SYN to another port', through: 'from_host', packet: tcp(c, at(f.node, 8080), { flags: 'S' }), ...DENIED },
        {
          say: 'SYN to the node port, nothing passes through',
          through: 'from_host',
          packet: tcp(at(f.client, PORT + 1), front, { flags: 'S' }),
          ...DENIED,
          policies: [policy('through', { of: HOST, ingress: [], scope: 'forward' })],
        },
      ],
    },
    {
      name: `${f.name}: rules of the host hold for what a pod sends to it in a connection of the proxy before us`,
      given: { backends, takeover: true, policies: [policy('closed', { of: HOST, ingress: [] })] },
      steps: [{ say: 'data', through: 'from_workload', packet: tcp(at(f.pod, PORT), at(f.node, 8080), { flags: 'PA' }), ...DENIED }],
    },
    {
      name: `${f.name}: Standard mode: what the node sends to a service untranslated does not leave`,
      given: standard,
      steps: [
        {
          say: 'SYN',
          through: 'to_host',
          packet: tcp(at(f.node, PORT), at(f.bareVip, 80), { flags: 'S' }),
          action: 'redirect',
          reason: 'DROP_STRAY_SERVICE',
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
