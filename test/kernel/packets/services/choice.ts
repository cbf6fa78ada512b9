// SPDX-License-Identifier: Apache-2.0
/** Which backend a flow gets, and how long it stays: policies, affinity, Maglev, backends that go. Layer: test. */
import { FRONTEND_INSIDE_LOCAL, FRONTEND_MAGLEV, FRONTEND_OUTSIDE_LOCAL, FRONTEND_RANGES } from '#lib/base/bpf-constants.ts'
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { Given, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

/** A datagram from the client to the node port, and where it must come out. */
function datagram(f: Family, to: string | undefined, more: Partial<Step> & { readonly from?: string } = {}): Step {
  const { from = at(f.client, PORT), ...rest } = more
  const packet = udp(from, at(f.node, NODE_PORT), { payload: 'x' })
  const out = to === undefined ? {} : { out: udp(from, to, { payload: 'x', ttl: 63 }) }
  return { say: `datagram to ${to ?? 'no backend'}`, through: 'from_host', packet, action: 'redirect', ...out, ...rest }
}

function forFamily(f: Family): PacketCase[] {
  const [here, there] = [
    { addr: f.pod, port: 8080 },
    { addr: f.secondPod, port: 8080 },
  ]
  const elsewhere = { addr: f.maskedPod, port: 8080 }
  const [near, far] = [at(f.pod, 8080), at(f.secondPod, 8080)]
  return [
    {
      name: `${f.name}: traffic policy Local: others are sent to this node's backends, pods to any`,
      given: { backends: [here], outside: [there], flags: FRONTEND_OUTSIDE_LOCAL },
      steps: [
        datagram(f, far),
        {
          say: 'from a pod',
          through: 'from_workload',
          packet: udp(at(f.secondPod, PORT), at(f.vip, 80), { payload: 'x' }),
          action: 'redirect',
          out: udp(at(f.secondPod, PORT), near, { payload: 'x', ttl: 63 }),
        },
        {
          say: 'from a pod of another node',
          through: 'from_host',
          packet: udp(at(f.remotePod, PORT), at(f.vip, 80), { payload: 'x' }),
          action: 'redirect',
          out: udp(at(f.remotePod, PORT), near, { payload: 'x', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: traffic policy Local without a backend here: silence`,
      given: { backends: [here], outside: [], flags: FRONTEND_OUTSIDE_LOCAL },
      steps: [datagram(f, undefined, { action: 'drop', reason: 'DROP_NO_LOCAL_BACKEND' })],
    },
    {
      name: `${f.name}: internal traffic policy Local without a backend here: silence`,
      given: { backends: [], flags: FRONTEND_INSIDE_LOCAL },
      steps: [
        {
          say: 'from a pod',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'drop',
          reason: 'DROP_NO_LOCAL_BACKEND',
        },
      ],
    },
    {
      name: `${f.name}: source ranges let in the clients that they name`,
      given: { backends: [here], sources: [f.client], flags: FRONTEND_RANGES },
      steps: [
        datagram(f, near),
        datagram(f, undefined, { say: 'a stranger', from: at(f.stranger, PORT), action: 'drop', reason: 'DROP_SOURCE_RANGE' }),
      ],
    },
    {
      name: `${f.name}: affinity: the client's next flow goes where its last one went`,
      given: { backends: [here], affinity: 60 },
      steps: [
        datagram(f, near),
        datagram(f, near, {
          say: 'another flow of the client, its backend being one of many now',
          from: at(f.client, PORT + 1),
          given: { backends: [there, there, there, there, there, there, here], affinity: 60 },
        }),
        datagram(f, far, {
          say: 'the backend is served no more',
          from: at(f.client, PORT + 2),
          given: { backends: [there], alive: [here], affinity: 60 },
        }),
      ],
    },
    {
      name: `${f.name}: affinity: a client whose last backend is ending is sent to one of those that serve, and the table names that one`,
      given: { backends: [here], affinity: 60 },
      steps: [
        { ...datagram(f, near), affinity: { client: f.client, among: [near] } },
        ...[1, 2, 3].map((number) =>
          datagram(f, undefined, {
            say: `to one of two, ${number}`,
            from: at(f.client, PORT + number),
            given: { backends: [there, elsewhere], alive: [here], affinity: 60 },
            affinity: { client: f.client, among: [far, at(f.maskedPod, 8080)] },
          }),
        ),
      ],
    },
    {
      name: `${f.name}: affinity lasts for its timeout after the client's last flow, and no longer`,
      given: { backends: [here], maglev: [0], flags: FRONTEND_MAGLEV, affinity: 10 },
      steps: [
        datagram(f, near),
        ...[1, 2].map((number) =>
          datagram(f, near, {
            say: `8 s after the one before, ${number}`,
            from: at(f.client, PORT + number),
            age: 8000,
            given: { backends: [here, there], maglev: [1], flags: FRONTEND_MAGLEV, affinity: 10 },
          }),
        ),
        datagram(f, far, { say: '11 s after the last', from: at(f.client, PORT + 3), age: 11_000 }),
      ],
    },
    {
      name: `${f.name}: Maglev's table decides`,
      given: { backends: [here, there], maglev: [1], flags: FRONTEND_MAGLEV },
      steps: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => datagram(f, far, { from: at(f.client, PORT + number) })),
    },
    {
      name: `${f.name}: Maglev takes over connections of another node in the middle`,
      given: { backends: [here], maglev: [0], flags: FRONTEND_MAGLEV },
      steps: [
        {
          say: 'ACK of a flow that is not known',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'A' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), near, { flags: 'A', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: a UDP flow leaves a backend that is gone, and stays with one that is ending`,
      given: { backends: [here] },
      steps: [
        datagram(f, near),
        datagram(f, near, { say: 'its backend is ending', age: A_WHILE, given: { backends: [there], alive: [here] } }),
        datagram(f, near, { say: 'gone, but not looked at yet', given: { backends: [there] } }),
        datagram(f, far, { say: 'gone', age: A_WHILE, given: { backends: [there] } }),
        {
          say: 'answer of the new backend',
          through: 'from_workload',
          packet: udp(far, at(f.client, PORT), { payload: 'y' }),
          action: 'redirect',
          out: udp(at(f.node, NODE_PORT), at(f.client, PORT), { payload: 'y', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: a SYN without an answer tries another backend when its first is gone, an open connection stays`,
      given: { backends: [here] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), near, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN again',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), far, { flags: 'S', ttl: 63 }),
          given: { backends: [there] },
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(far, at(f.client, PORT), { flags: 'SA' }),
          action: 'redirect',
          out: tcp(at(f.node, NODE_PORT), at(f.client, PORT), { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'ACK, the backend being gone from the service',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'A' }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), far, { flags: 'A', ttl: 63 }),
          age: A_WHILE,
          given: { backends: [here] },
        },
      ],
    },
    {
      name: `${f.name}: a UDP flow leaves a gone backend that has the address the client meant`,
      given: { backends: [{ addr: f.node, port: 8080 }] },
      steps: [
        {
          say: 'request',
          through: 'from_host',
          packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'x' }),
          action: 'pass',
          out: udp(at(f.client, PORT), at(f.node, 8080), { payload: 'x' }),
        },
        {
          say: 'later',
          through: 'from_host',
          packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'x' }),
          action: 'redirect',
          out: udp(at(f.client, PORT), near, { payload: 'x', ttl: 63 }),
          age: A_WHILE,
          given: { backends: [here] },
        },
      ],
    },
    lateService(f, { say: 'a service that comes later', from: at(f.pod, PORT), masked: at(f.pod, PORT) }),
    lateService(f, {
      say: 'a service that comes later, to a pod that left as this node',
      from: at(f.maskedPod, PORT),
      masked: at(f.node, NAT_PORT),
    }),
  ]
}

/** Asks before there is a service, goes on asking, and is answered once there is one. */
function lateService(
  f: Family,
  { say, from, masked }: { readonly say: string; readonly from: string; readonly masked: string },
): PacketCase {
  const address = at(f.client, 90)
  const step = (to: string, more: Partial<Step> & Pick<Step, 'say'>): Step => ({
    through: 'from_workload',
    packet: udp(from, address, { payload: 'x' }),
    action: 'redirect',
    out: udp(to === address ? masked : from, to, { payload: 'x', ttl: 63 }),
    ...more,
  })
  const backend = { addr: f.secondPod, port: 8080 }
  const there: Given = { backends: [backend], frontends: [address] }
  return {
    name: `${f.name}: a UDP flow finds ${say}`,
    given: {},
    steps: [
      step(address, { say: 'to an address like any' }),
      step(address, { say: 'again, after a while', age: A_WHILE }),
      step(at(f.secondPod, 8080), { say: 'it is a service by now', age: A_WHILE, given: there }),
      step(at(f.secondPod, 8080), { say: 'and stays one', age: A_WHILE, given: there }),
      {
        say: 'answer',
        through: 'from_workload',
        packet: udp(at(f.secondPod, 8080), from, { payload: 'y' }),
        action: 'redirect',
        out: udp(address, from, { payload: 'y', ttl: 63 }),
      },
      step(address, { say: 'it is none any more', age: A_WHILE, given: {} }),
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
