// SPDX-License-Identifier: Apache-2.0
/** One client port used in several ways at once: each flow stays apart from the others. Layer: test. */
import { tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

function forFamily(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const moved = at(f.client, NAT_PORT)
  const pod = at(f.pod, 8080)
  const backends = [{ addr: f.pod, port: 8080 }]
  const sport = tunnelPort({ src: f.client, dst: f.pod, sport: PORT, dport: 8080 })
  const backPort = (port: number) => tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: port })
  const tunnelled = (packet: Uint8Array) => tunnel(f.otherNode, f.node, { inner: packet, vni: VNI, sport })
  const byService: Step[] = [
    {
      say: 'by the service',
      through: 'from_host',
      packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S' }),
      action: 'redirect',
      out: tcp(c, pod, { flags: 'S', ttl: 63 }),
    },
    {
      say: 'answered',
      through: 'from_workload',
      packet: tcp(pod, c, { flags: 'SA' }),
      action: 'redirect',
      out: tcp(at(f.node, NODE_PORT), c, { flags: 'SA', ttl: 63 }),
    },
    {
      say: 'acknowledged',
      through: 'from_host',
      packet: tcp(c, at(f.node, NODE_PORT), { flags: 'A' }),
      action: 'redirect',
      out: tcp(c, pod, { flags: 'A', ttl: 63 }),
    },
  ]
  /** begun and ended by both */
  const directly: Step[] = (['S', 'A', 'FA'] as const).flatMap((flags): Step[] => [
    {
      say: `directly, ${flags}`,
      through: 'from_host',
      packet: tcp(c, pod, { flags }),
      action: 'redirect',
      out: tcp(c, pod, { flags, ttl: 63 }),
    },
    {
      say: 'answered',
      through: 'from_workload',
      packet: tcp(pod, c, { flags: flags === 'S' ? 'SA' : flags }),
      action: 'redirect',
      out: tcp(pod, c, { flags: flags === 'S' ? 'SA' : flags, ttl: 63 }),
    },
  ])
  /** `port`: by which the pod knows the client */
  const afterDirectly = [
    {
      way: 'a service',
      packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S' }),
      answer: () => tcp(at(f.node, NODE_PORT), c, { flags: 'SA', ttl: 63 }),
    },
    {
      way: 'another node',
      packet: tunnelled(tcp(c, pod, { flags: 'S', ttl: 63 })),
      answer: (port: number) =>
        tunnel(f.node, f.otherNode, { inner: tcp(pod, c, { flags: 'SA', ttl: 63 }), vni: VNI, sport: backPort(port) }),
    },
  ]
  const stillByService: Step = {
    say: 'the first goes on',
    through: 'from_workload',
    packet: tcp(pod, c, { flags: 'A' }),
    action: 'redirect',
    out: tcp(at(f.node, NODE_PORT), c, { flags: 'A', ttl: 63 }),
  }
  return [
    {
      name: `${f.name}: by a service, then directly to its backend from the same port`,
      given: { backends },
      steps: [
        ...byService,
        {
          say: 'directly',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'S' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
          flows: [{ proto: 6, from: c, to: pod, lane: 1 }],
        },
        {
          say: 'answered',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(pod, c, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'goes on after a while, for both its views',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'A' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'A', ttl: 63 }),
          age: A_WHILE,
          flows: [
            { proto: 6, from: c, to: pod, lane: 1, fresh: true },
            { proto: 6, from: pod, to: moved, fresh: true },
            { proto: 6, from: pod, to: c, fresh: false },
          ],
        },
        {
          say: 'and its answers do',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'A' }),
          action: 'redirect',
          out: tcp(pod, c, { flags: 'A', ttl: 63 }),
          age: A_WHILE,
          flows: [{ proto: 6, from: c, to: pod, lane: 1, fresh: true }],
        },
        stillByService,
      ],
    },
    ...afterDirectly.flatMap(({ way, packet, answer }) =>
      [
        { when: 'just now', age: 0, sees: moved, port: NAT_PORT },
        { when: 'a while ago', age: A_WHILE, sees: c, port: PORT },
      ].map(({ when, age, sees, port }) => ({
        name: `${f.name}: directly, which ended ${when}, then by ${way} from the same port`,
        given: { backends },
        steps: [
          ...directly,
          { say: `by ${way}`, through: 'from_host', packet, action: 'redirect', out: tcp(sees, pod, { flags: 'S', ttl: 63 }), age },
          {
            say: 'answered',
            through: 'from_workload',
            packet: tcp(pod, sees, { flags: 'SA' }),
            action: 'redirect',
            out: answer(port),
          },
        ] satisfies Step[],
      })),
    ),
    {
      name: `${f.name}: by this node, then by another node to the same backend from the same port`,
      given: { backends },
      steps: [
        ...byService,
        {
          say: 'by the other node',
          through: 'from_host',
          packet: tunnelled(tcp(c, pod, { flags: 'S', ttl: 63 })),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'answered through the tunnel',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'A' }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, { inner: tcp(pod, c, { flags: 'A', ttl: 63 }), vni: VNI, sport: backPort(NAT_PORT) }),
        },
        stillByService,
      ],
    },
    {
      name: `${f.name}: by two other nodes from the same port`,
      given: {},
      steps: [
        {
          say: 'by one',
          through: 'from_host',
          packet: tunnelled(udp(c, pod, { payload: 'x', ttl: 63 })),
          action: 'redirect',
          out: udp(c, pod, { payload: 'x', ttl: 63 }),
        },
        {
          say: 'by the other',
          through: 'from_host',
          packet: tunnel(f.thirdNode, f.node, { inner: udp(c, pod, { payload: 'x', ttl: 63 }), vni: VNI, sport }),
          action: 'redirect',
          out: udp(moved, pod, { payload: 'x', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: another node goes on with a connection in its middle`,
      given: {},
      steps: [
        {
          say: 'by one',
          through: 'from_host',
          packet: tunnelled(tcp(c, pod, { flags: 'S', ttl: 63 })),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'by the other',
          through: 'from_host',
          packet: tunnel(f.thirdNode, f.node, { inner: tcp(c, pod, { flags: 'A', ttl: 63 }), vni: VNI, sport }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'A', ttl: 63 }),
        },
        {
          say: 'which gets the answers',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'A' }),
          action: 'redirect',
          out: tunnel(f.node, f.thirdNode, { inner: tcp(pod, c, { flags: 'A', ttl: 63 }), vni: VNI, sport: backPort(PORT) }),
        },
      ],
    },
    {
      name: `${f.name}: by another node, then directly from the same port`,
      given: {},
      steps: [
        {
          say: 'by the other node',
          through: 'from_host',
          packet: tunnelled(udp(c, pod, { payload: 'x', ttl: 63 })),
          action: 'redirect',
          out: udp(c, pod, { payload: 'x', ttl: 63 }),
        },
        {
          say: 'directly',
          through: 'from_host',
          packet: udp(c, pod, { payload: 'x' }),
          action: 'redirect',
          out: udp(moved, pod, { payload: 'x', ttl: 63 }),
        },
        {
          say: 'answer to the direct one',
          through: 'from_workload',
          packet: udp(pod, moved, { payload: 'y' }),
          action: 'redirect',
          out: udp(pod, c, { payload: 'y', ttl: 63 }),
        },
        {
          say: 'answer to the other',
          through: 'from_workload',
          packet: udp(pod, c, { payload: 'y' }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, { inner: udp(pod, c, { payload: 'y', ttl: 63 }), vni: VNI, sport: backPort(PORT) }),
        },
      ],
    },
  ]
}

/** Each in turn gets the one port there is, for the answers of the one before are forgotten. */
function alikeNodes(f: Family): PacketCase {
  const [c, moved, pod] = [at(f.client, PORT), at(f.client, NAT_PORT), at(f.pod, 8080)]
  const sport = tunnelPort({ src: f.client, dst: f.pod, sport: PORT, dport: 8080 })
  return {
    name: `${f.name}: by nodes with similar addresses from the same port`,
    given: {},
    steps: [
      { say: 'directly', through: 'from_host', packet: udp(c, pod, { payload: 'x' }), action: 'redirect' },
      ...[f.otherNode, ...f.alikeNodes].map((node): Step => ({
        say: `by ${node}`,
        through: 'from_host',
        packet: tunnel(node, f.node, { inner: udp(c, pod, { payload: 'x', ttl: 63 }), vni: VNI, sport }),
        action: 'redirect',
        out: udp(moved, pod, { payload: 'x', ttl: 63 }),
        ...(node === f.otherNode ? {} : { forget: { proto: 17, from: pod, to: moved } }),
      })),
    ],
  }
}

/** The node's own server: reached by another node, then by the same client port directly. */
function ownServer(f: Family): PacketCase {
  const [c, moved, server] = [at(f.client, PORT), at(f.client, NAT_PORT), at(f.node, 8080)]
  const sport = tunnelPort({ src: f.client, dst: f.node, sport: PORT, dport: 8080 })
  const directly = (flags: string, more: Partial<Step> = {}): Step => ({
    say: `directly, ${flags}`,
    through: 'from_host',
    packet: tcp(c, server, { flags }),
    action: 'pass',
    out: tcp(moved, server, { flags }),
    ...more,
  })
  const byAnother = (flags: string): Step => ({
    say: `by another node, ${flags}`,
    through: 'from_host',
    packet: tunnel(f.otherNode, f.node, { inner: tcp(c, server, { flags }), vni: VNI, sport }),
    action: 'pass',
    out: tcp(c, server, { flags }),
  })
  return {
    name: `${f.name}: to the node's own server by another node, then directly from the same port`,
    given: {},
    steps: [
      byAnother('S'),
      directly('S'),
      directly('A'),
      {
        say: 'the answer to it leaves as any',
        through: 'to_host',
        packet: tcp(server, moved, { flags: 'A' }),
        action: 'pass',
        out: tcp(server, c, { flags: 'A' }),
      },
      byAnother('R'),
      directly('S', { say: 'directly, a while after the first is over: nothing to do', out: 'same', age: A_WHILE }),
    ],
  }
}

/** A pod that meant another node's node port and was sent to itself. */
function toItself(f: Family): PacketCase {
  const [client, server] = [at(f.pod, PORT), at(f.pod, 8080)]
  const node = at(f.otherNode, PORT)
  const sport = tunnelPort({ src: f.pod, dst: f.pod, sport: PORT, dport: 8080 })
  return {
    name: `${f.name}: a backend that reaches itself by another node sees that node`,
    given: {},
    steps: [
      {
        say: 'SYN',
        through: 'from_host',
        packet: tunnel(f.otherNode, f.node, { inner: tcp(client, server, { flags: 'S' }), vni: VNI, sport }),
        action: 'redirect',
        out: tcp(node, server, { flags: 'S' }),
      },
      {
        say: 'SYN-ACK',
        through: 'from_workload',
        packet: tcp(server, node, { flags: 'SA' }),
        action: 'redirect',
        out: tunnel(f.node, f.otherNode, {
          inner: tcp(server, client, { flags: 'SA', ttl: 63 }),
          vni: VNI,
          sport: tunnelPort({ src: f.pod, dst: f.otherNode, sport: 8080, dport: PORT }),
        }),
      },
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...forFamily(f), alikeNodes(f), ownServer(f), toItself(f)])
