// SPDX-License-Identifier: Apache-2.0
/** Flows that others made or that lose their end: another proxy's connections, pods that go. Layer: test. */
import { tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

function forFamily(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const moved = at(f.client, NAT_PORT)
  const front = at(f.node, NODE_PORT)
  const pod = at(f.pod, 8080)
  const backends = [{ addr: f.pod, port: 8080 }]
  const kernels = { action: 'pass', out: 'same' } as const
  /** of a connection of the proxy before us */
  const answer: Step = { say: 'its answer', through: 'from_workload', packet: tcp(pod, c, { flags: 'A' }), action: 'pass', out: 'same' }
  return [
    {
      name: `${f.name}: connections of the proxy before us stay with the kernel, new ones do not`,
      given: { backends, takeover: true },
      steps: [
        { say: 'request', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'pass', out: 'same' },
        { say: 'answer', through: 'from_workload', packet: tcp(pod, c, { flags: 'A' }), action: 'pass', out: 'same' },
        {
          say: 'a new connection',
          through: 'from_host',
          packet: tcp(at(f.client, PORT + 1), front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT + 1), pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'request when the time is over',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'PA' }),
          action: 'pass',
          out: 'same',
          age: A_WHILE,
          given: { backends },
        },
        {
          say: 'and its answer',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'PA' }),
          action: 'pass',
          out: 'same',
          age: A_WHILE,
        },
        {
          say: 'one that was not seen in time',
          through: 'from_host',
          packet: tcp(at(f.client, PORT + 2), front, { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
        },
      ],
    },
    {
      name: `${f.name}: in a connection of the proxy before us the kernel gives answers their service's address back, in no other`,
      given: { backends, frontends: [at(f.bareVip, 80)], takeover: true },
      steps: [
        { say: 'request', through: 'from_workload', packet: tcp(at(f.secondPod, PORT), at(f.bareVip, 80), { flags: 'A' }), ...kernels },
        { say: 'answer', through: 'to_workload', packet: tcp(at(f.bareVip, 80), at(f.secondPod, PORT), { flags: 'A' }), ...kernels },
        {
          say: 'answer when the time is over',
          through: 'to_workload',
          packet: tcp(at(f.bareVip, 80), at(f.secondPod, PORT), { flags: 'PA' }),
          ...kernels,
          age: A_WHILE,
          given: { backends, frontends: [at(f.bareVip, 80)] },
        },
        {
          say: 'answer to nothing',
          through: 'to_workload',
          packet: tcp(at(f.bareVip, 80), at(f.secondPod, PORT + 1), { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
      ],
    },
    {
      name: `${f.name}: a connection of the proxy before us outlives another one to its backend from the same port`,
      given: { backends, takeover: true },
      steps: [
        answer,
        {
          say: 'the other',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'S' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
          flows: [{ proto: 6, from: c, to: pod, lane: 1 }],
        },
        { ...answer, say: 'its answer once more' },
        {
          say: 'the answer of the other',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(pod, c, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'and its data',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'PA' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'PA', ttl: 63 }),
        },
        { say: 'its request', through: 'to_workload', packet: tcp(c, pod, { flags: 'A' }), action: 'pass', out: 'same' },
      ],
    },
    {
      name: `${f.name}: a connection of the proxy before us outlives one by another service to its backend from the same port`,
      given: { backends, takeover: true },
      steps: [
        answer,
        {
          say: 'the other',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
        },
        { ...answer, say: 'its answer once more' },
        {
          say: 'the answer of the other',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'SA', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: the connection of a pod that is gone gets a RST, as the service`,
      given: { backends },
      steps: [
        { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
        { say: 'SYN-ACK', through: 'from_workload', packet: tcp(pod, c, { flags: 'SA' }), action: 'redirect' },
        {
          say: 'data, the pod being gone',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'PA', seq: 1001, ack: 1001, payload: 'hello' }),
          action: 'redirect',
          reason: 'DROP_POD_GONE',
          out: tcp(front, c, { flags: 'R', seq: 1001, ack: 0, window: 0 }),
          age: A_WHILE,
          gone: f.pod,
        },
        {
          say: 'and again',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'PA', seq: 1001, ack: 1001, payload: 'hello' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
        },
      ],
    },
    {
      name: `${f.name}: a pod that gets another's address gets none of its connections`,
      given: {},
      steps: [
        { say: 'SYN', through: 'from_host', packet: tcp(c, pod, { flags: 'S' }), action: 'redirect' },
        {
          say: 'data, another pod having the address',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'A', ack: 7 }),
          action: 'redirect',
          reason: 'DROP_POD_GONE',
          out: tcp(pod, c, { flags: 'R', seq: 7, ack: 0, window: 0 }),
          age: A_WHILE,
          reused: f.pod,
        },
      ],
    },
    {
      name: `${f.name}: the RST of a pod that is gone returns through the tunnel`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: tcp(c, pod, { flags: 'S' }), vni: VNI, sport: 50000 }),
          action: 'redirect',
        },
        {
          say: 'data, the pod being gone',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: tcp(c, pod, { flags: 'A', ack: 7 }), vni: VNI, sport: 50000 }),
          action: 'redirect',
          reason: 'DROP_POD_GONE',
          out: tunnel(f.node, f.otherNode, {
            inner: tcp(pod, c, { flags: 'R', seq: 7, ack: 0, window: 0 }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: PORT }),
          }),
          age: A_WHILE,
          gone: f.pod,
        },
      ],
    },
    {
      name: `${f.name}: datagrams to a pod that is gone are the kernel's to answer`,
      given: {},
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, pod, { payload: 'x' }), action: 'redirect' },
        {
          say: 'the pod being gone',
          through: 'from_host',
          packet: udp(c, pod, { payload: 'x' }),
          action: 'pass',
          out: 'same',
          age: A_WHILE,
          gone: f.pod,
        },
      ],
    },
    {
      name: `${f.name}: takeover: a SYN on a foreign flow is a new connection (policy)`,
      given: { backends, takeover: true },
      steps: [
        { say: 'one ACK', through: 'from_host', packet: tcp(c, at(f.pod, 22), { flags: 'A' }), action: 'pass', out: 'same' },
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, at(f.pod, 22), { flags: 'S' }),
          action: 'redirect',
        },
      ],
    },
    {
      name: `${f.name}: takeover over: a SYN on a foreign flow to a service is translated`,
      given: { backends, takeover: true },
      steps: [
        { say: 'one ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'pass', out: 'same' },
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
          age: A_WHILE,
          given: { backends },
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
