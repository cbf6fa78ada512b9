// SPDX-License-Identifier: Apache-2.0
/** ICMP errors about a service's flow that another node has: the network leads them where it likes. Layer: test. */
import { FRONTEND_MAGLEV } from '#lib/base/bpf-constants.ts'
import { icmp, l3, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers, quoteAs } from './errors.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 46_000
const UNKNOWN = { action: 'drop', reason: 'DROP_STRAY_SERVICE' } as const

function otherNode(f: Family): PacketCase[] {
  const [type, code] = numbers(f).tooBig
  const [front, back] = [at(f.bareVip, 80), at(f.pod, 8080)]
  const answer = (to: string, from = front) => udp(from, to, { payload: 'world', ttl: 60 })
  /** what a router says of a service's answer to this client */
  const error = (client: string, { from = f.stranger, ttl = 64 } = {}) =>
    icmp(from, f.bareVip, { type, code, word: 1400, ttl, body: l3(answer(client)) })
  const atPod = (client: string, ttl: number) =>
    icmp(f.stranger, f.pod, { type, code, word: 1400, ttl, body: quoteAs(f, answer(client), answer(client, back)) })
  const by = (node: string, to: string, { src, dst, inner }: { src: string; dst: string; inner: Uint8Array }) =>
    tunnel(node, to, { inner, vni: VNI, sport: tunnelPort({ src, dst, sport: 0, dport: 0 }) })
  const inTunnel = (inner: Uint8Array, node = f.thirdNode) => by(node, f.node, { src: f.stranger, dst: f.bareVip, inner })
  const client = at(f.client, PORT)
  const ofNode = (to: string) => icmp(f.stranger, f.thirdNode, { type, code, word: 1400, body: l3(answer(to, at(f.thirdNode, NODE_PORT))) })
  const sentBack = (to: string) => by(f.thirdNode, f.node, { src: f.stranger, dst: f.thirdNode, inner: ofNode(to) })
  const entered = udp(client, front)
  /** of an answer of the pod's own, which passed no service */
  const plain = (from: string) => icmp(from, f.pod, { type, code, word: 1400, ttl: 63, body: l3(answer(client, back)) })
  const far = [{ addr: f.remotePod, port: 8080, node: f.otherNode }]
  const near = [{ addr: f.pod, port: 8080 }]
  const opens = (from: string, addr: string): Step => ({
    say: `datagram by the node that ${addr} asked`,
    through: 'from_host',
    packet: by(f.otherNode, f.node, { src: addr, dst: f.pod, inner: udp(from, back, { ttl: 63 }) }),
    action: 'redirect',
  })
  const comes = (say: string, packet: Uint8Array, then: Pick<Step, 'action' | 'out' | 'reason'>): Step => ({
    say,
    through: 'from_host',
    packet,
    ...then,
  })
  return [
    {
      name: `${f.name}: an error about a service's flow of another node is sent to the node that has the backend, by Maglev's table`,
      given: { backends: far, frontends: [front], maglev: [0], flags: FRONTEND_MAGLEV },
      steps: [
        comes('a router tells', error(client), {
          action: 'redirect',
          out: by(f.node, f.otherNode, { src: f.stranger, dst: f.bareVip, inner: error(client, { ttl: 63 }) }),
        }),
        comes('with an address of the node', error(client, { from: f.quietOwn }), { action: 'drop', reason: 'DROP_SPOOFED' }),
        comes('as a pod of the overlay', error(client, { from: f.overlayPod }), { action: 'drop', reason: 'DROP_SPOOFED' }),
        comes('another node has sent it here already', inTunnel(error(client)), UNKNOWN),
        comes('of a node port of the node that sent it, which would send it here again', sentBack(client), {
          action: 'drop',
          reason: 'DROP_NO_ROUTE',
        }),
        { ...comes('chosen by chance, nothing tells the node', error(client), UNKNOWN), given: { backends: far, frontends: [front] } },
      ],
    },
    {
      name: `${f.name}: an error about a service's flow that passed another node reaches the backend here, if its flow is known`,
      given: { backends: near, frontends: [front], maglev: [0], flags: FRONTEND_MAGLEV },
      steps: [
        comes('before there is such a flow', error(client), UNKNOWN),
        comes('and in the tunnel', inTunnel(error(client)), UNKNOWN),
        opens(client, f.client),
        comes('from the network', error(client), { action: 'redirect', out: atPod(client, 63) }),
        comes('by a third node', inTunnel(error(client, { ttl: 63 })), { action: 'redirect', out: atPod(client, 63) }),
        comes('about another port', error(at(f.client, PORT + 1)), UNKNOWN),
        opens(at(f.overlayPod, PORT), f.overlayPod),
        comes("about a pod's flow, which passed no service", error(at(f.overlayPod, PORT)), { action: 'drop', reason: 'DROP_SPOOFED' }),
      ],
    },
    {
      name: `${f.name}: an error about a service's flow that came to this node reaches its backend, by whichever node the error comes`,
      given: { backends: near, frontends: [front], maglev: [0], flags: FRONTEND_MAGLEV },
      steps: [
        { say: 'the client asks this node', through: 'from_host', packet: entered, action: 'redirect' },
        comes('a router tells this node', error(client), { action: 'redirect', out: atPod(client, 63) }),
        comes('and another one', inTunnel(error(client, { ttl: 63 })), { action: 'redirect', out: atPod(client, 63) }),
        comes('as a pod of the overlay', inTunnel(error(client, { from: f.overlayPod })), { action: 'drop', reason: 'DROP_SPOOFED' }),
        comes('as loopback', inTunnel(error(client, { from: f.loopback })), { action: 'drop', reason: 'DROP_SPOOFED' }),
        comes('about another port', inTunnel(error(at(f.client, PORT + 1))), UNKNOWN),
      ],
    },
    {
      name: `${f.name}: an error out of the tunnel about a flow that passed no service, or no network, reaches nobody`,
      given: { backends: near, frontends: [front], maglev: [0], flags: FRONTEND_MAGLEV },
      steps: [
        { say: 'a client asks the pod itself', through: 'from_host', packet: udp(client, back), action: 'redirect' },
        comes('of that', inTunnel(plain(f.stranger)), { action: 'drop', reason: 'DROP_SPOOFED' }),
        { say: 'a pod asks the service', through: 'from_workload', packet: udp(at(f.pod, PORT), front), action: 'redirect' },
        comes('of that', inTunnel(error(at(f.pod, PORT))), { action: 'drop', reason: 'DROP_SPOOFED' }),
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(otherNode)
