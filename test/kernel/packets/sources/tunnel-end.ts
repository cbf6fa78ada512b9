// SPDX-License-Identifier: Apache-2.0
/** What would pass for a node's tunnel packet: pods, and services that lead to a node's tunnel port. Layer: test. */
import { tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { BackendGiven, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { policy } from '../policy/policies.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, ASKED, NODE_PORT, VNI, at, devices, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 46_000
const TUNNEL_PORT = 4789
const REFUSED = { action: 'drop', reason: 'DROP_TUNNEL_SOURCE' } as const

/** A VXLAN header and some inner packet. */
const FORGED = Uint8Array.from([8, 0, 0, 0, 0, VNI >> 8, VNI & 255, 0, ...new Uint8Array(40)])

interface Sender {
  readonly say: string
  readonly through: Step['through']
  readonly from: string
  readonly to: string
}

function services(f: Family): PacketCase[] {
  const senders: readonly Sender[] = [
    { say: 'a pod', through: 'from_workload', from: at(f.pod, PORT), to: at(f.vip, 80) },
    { say: 'a pod that leaves as its node', through: 'from_workload', from: at(f.maskedPod, PORT), to: at(f.vip, 80) },
    { say: 'a pod by a node port', through: 'from_workload', from: at(f.pod, PORT), to: at(f.node, NODE_PORT) },
    { say: 'a process of the node', through: 'to_host', from: at(f.node, PORT), to: at(f.vip, 80) },
    { say: 'a client outside', through: 'from_host', from: at(f.client, PORT), to: at(f.node, NODE_PORT) },
    { say: 'a client that is answered directly', through: 'from_host', from: at(f.directClient, PORT), to: at(f.node, NODE_PORT) },
  ]
  const ends: readonly (readonly [say: string, backend: BackendGiven])[] = [
    ['another node', { addr: f.otherNode, port: TUNNEL_PORT }],
    ['a pod of another node with its address', { addr: f.otherNode, port: TUNNEL_PORT, node: f.otherNode }],
    ['another node by a third', { addr: f.otherNode, port: TUNNEL_PORT, node: f.thirdNode }],
    ['this node', { addr: f.node, port: TUNNEL_PORT }],
    ['another address of this node', { addr: f.quietOwn, port: TUNNEL_PORT }],
  ]
  const first = { payload: FORGED, id: 99, fragment: { offset: 0, more: true } }
  return ends.flatMap(([say, backend]): PacketCase[] => [
    {
      name: `${f.name}: no service leads to the tunnel port of ${say}`,
      given: { backends: [backend] },
      steps: senders.flatMap(({ from, to, ...sender }): Step[] => [
        { ...sender, packet: udp(from, to, { payload: FORGED }), ...REFUSED, flows: [{ proto: 17, from, to, gone: true }] },
        { ...sender, say: `${sender.say}, the first fragment`, packet: udp(from, to, first), ...REFUSED },
      ]),
    },
    {
      name: `${f.name}: TCP, and other ports, of ${say} are as good as any`,
      given: { backends: [backend] },
      steps: [
        { say: 'TCP', through: 'from_workload', packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }), action: passes(f, backend) },
        {
          say: 'another port',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), at(f.vip, 80)),
          action: passes(f, backend),
          given: { backends: [{ ...backend, port: TUNNEL_PORT + 1 }] },
        },
      ],
    },
  ])
}

/** To the node itself it goes by the kernel. */
function passes(f: Family, { addr }: BackendGiven): Step['action'] {
  return [f.node, f.quietOwn].includes(addr) ? 'pass' : 'redirect'
}

function pods(f: Family): PacketCase[] {
  const [late = ''] = f.alikeNodes
  const pod = at(f.pod, PORT)
  const sends = (say: string, to: string): Step => ({
    say,
    through: 'from_workload',
    packet: udp(pod, to, { payload: FORGED }),
    ...REFUSED,
  })
  const inner = (to: string): Uint8Array => udp(at(f.remotePod, PORT), to, { payload: FORGED })
  const back = (addr: string, port: number): Uint8Array => udp(at(f.pod, 8080), at(addr, port), { payload: FORGED })
  const answers = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, ...REFUSED })
  const outer = { vni: VNI, sport: tunnelPort({ src: f.thirdNode, dst: f.pod, sport: TUNNEL_PORT, dport: 8080 }) }
  const overlaid = at(f.overlayPod, PORT)
  const own = { say: 'own', action: 'pass', out: 'same' } as const
  return [
    {
      name: `${f.name}: a pod sends nothing to the tunnel port of a node`,
      given: {},
      steps: [
        sends('of another', at(f.otherNode, TUNNEL_PORT)),
        sends('of its own', at(f.node, TUNNEL_PORT)),
        sends('of its own, by another address', at(f.quietOwn, TUNNEL_PORT)),
        sends('of its own, by an address of the link', at(f.v4 ? '192.168.50.255' : 'fe80::7', TUNNEL_PORT)),
        {
          say: 'out of the tunnel',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: inner(at(f.node, TUNNEL_PORT)), ...outer }),
          ...REFUSED,
        },
        {
          say: 'of a stranger that is no node',
          through: 'from_workload',
          packet: udp(pod, at(f.stranger, TUNNEL_PORT), { payload: FORGED }),
          action: 'redirect',
        },
      ],
    },
    {
      name: `${f.name}: a pod's answer does not go to a node's tunnel port either`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'a client that has the address and port of a tunnel',
          through: 'from_host',
          packet: udp(at(f.otherNode, TUNNEL_PORT), at(f.node, NODE_PORT)),
          action: 'redirect',
        },
        answers('answer', back(f.otherNode, TUNNEL_PORT)),
        answers('and another', back(f.otherNode, TUNNEL_PORT)),
        {
          say: 'such a client by another node',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, {
            inner: udp(at(f.thirdNode, TUNNEL_PORT), at(f.pod, 8080)),
            ...outer,
            origin: at(f.otherNode, NODE_PORT),
          }),
          action: 'redirect',
        },
        answers('direct answer', back(f.thirdNode, TUNNEL_PORT)),
        { ...answers('answer a while later', back(f.otherNode, TUNNEL_PORT)), age: A_WHILE },
      ],
    },
    {
      name: `${f.name}: a flow that goes on by the tunnel leads to no tunnel port, though it began without it`,
      given: { policies: [policy('through', { of: HOST, ingress: [{}], egress: [{}], scope: 'forward' })] },
      steps: [
        { say: 'begins', through: 'from_host', packet: udp(overlaid, at(f.thirdNode, TUNNEL_PORT)), action: 'redirect' },
        { say: 'is answered', through: 'from_host', packet: udp(at(f.thirdNode, TUNNEL_PORT), overlaid), action: 'redirect' },
        {
          say: 'goes on',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: udp(overlaid, at(f.thirdNode, TUNNEL_PORT)), ...outer }),
          ...REFUSED,
        },
      ],
    },
    {
      name: `${f.name}: a flow ends when its destination is found to be a node's tunnel port`,
      given: { backends: [{ addr: late, port: TUNNEL_PORT }] },
      steps: [
        { say: 'a pod', through: 'from_workload', packet: udp(pod, at(late, TUNNEL_PORT)), action: 'redirect', gone: late },
        { say: 'by a service', through: 'from_workload', packet: udp(pod, at(f.vip, 80)), action: 'redirect' },
        { ...sends('a pod', at(late, TUNNEL_PORT)), age: A_WHILE, becomesNode: late },
        sends('by a service', at(f.vip, 80)),
      ],
    },
    {
      name: `${f.name}: what the node's own kernel sends to tunnel ports, and gets, is left alone`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { ...own, through: 'to_host', packet: udp(at(f.node, PORT), at(f.otherNode, TUNNEL_PORT), { payload: FORGED }) },
        {
          ...own,
          say: "own, with a pod's packet in it, whose mark it has",
          through: 'to_host',
          mark: ASKED,
          packet: udp(at(f.node, PORT), at(f.otherNode, TUNNEL_PORT), { payload: FORGED }),
        },
        {
          ...own,
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: inner(at(f.pod, 80)), vni: VNI + 1, sport: PORT }),
        },
      ],
    },
  ]
}

/** A kernel that hides a client behind its own address may give it the tunnel's port: it takes any. */
function hidden(f: Family): PacketCase[] {
  const answer = (to: string): Uint8Array => udp(at(f.pod, 8080), at(to, TUNNEL_PORT), { payload: FORGED })
  const question = (from: string): Uint8Array => udp(at(from, TUNNEL_PORT), at(f.pod, 8080))
  const answers = (to: string, action: Step['action']): Step[] =>
    ['answer', 'and another'].map((say) => ({ say, through: 'from_workload', packet: answer(to), action }))
  const leaving = { through: 'to_host', mark: ASKED, arrived: devices.pod.name } as const
  return [
    {
      name: `${f.name}: a pod answers its node's kernel that has given a client the tunnel's port`,
      given: {},
      steps: [{ say: 'asks', through: 'to_workload', packet: question(f.node), action: 'pass' }, ...answers(f.node, 'pass')],
    },
    {
      name: `${f.name}: a pod answers another node's kernel that has given a client the tunnel's port`,
      given: {},
      steps: [
        { say: 'asks', through: 'from_host', packet: question(f.otherNode), action: 'redirect' },
        ...answers(f.otherNode, 'redirect'),
      ],
    },
    {
      name: `${f.name}: what a pod of another node answers at the tunnel's port is the kernel's`,
      given: {},
      steps: [
        { say: 'asks', through: 'to_host', packet: udp(at(f.node, TUNNEL_PORT), at(f.remotePod, 8080)), action: 'pass' },
        {
          say: 'answer',
          through: 'from_host',
          packet: udp(at(f.remotePod, 8080), at(f.node, TUNNEL_PORT), { payload: new Uint8Array(64) }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: an answer that the kernel gives its own address does not leave for a node's tunnel port`,
      given: {},
      steps: [
        { say: "with the pod's address", ...leaving, packet: answer(f.otherNode), action: 'pass' },
        {
          say: "with the node's",
          ...leaving,
          packet: udp(at(f.node, 8080), at(f.otherNode, TUNNEL_PORT), { payload: FORGED }),
          ...REFUSED,
        },
      ],
    },
  ]
}

/** What the node forwards, and what its tunnel brings: not each other's. */
function forwarded(f: Family): PacketCase {
  const [node, pod] = [at(f.otherNode, TUNNEL_PORT), at(f.remotePod, 22)]
  const answer = udp(pod, node, { payload: FORGED })
  const sent = { through: 'from_host', action: 'redirect' } as const
  return {
    name: `${f.name}: by an answer of what is forwarded nothing goes out of the tunnel to a node's tunnel port`,
    given: { policies: [policy('through', { of: HOST, scope: 'forward', ingress: [{}], egress: [{}] })] },
    steps: [
      { say: 'asks', ...sent, packet: udp(node, pod) },
      { say: 'answers', ...sent, packet: answer },
      { say: 'answers again', ...sent, packet: answer },
      {
        say: 'in the tunnel',
        through: 'from_host',
        packet: tunnel(f.thirdNode, f.node, { inner: answer, vni: VNI, sport: 50_000 }),
        ...REFUSED,
      },
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...services(f), ...pods(f), ...hidden(f), forwarded(f)])
