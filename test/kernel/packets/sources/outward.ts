// SPDX-License-Identifier: Apache-2.0
/** Pods and the rest of the world: masquerade, the overlay, whose addresses are believed. Layer: test. */
import { icmp, l3, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

/** The quoted echo with the checksum of another: no receiver looks at it, so it is not mended. */
function checksumOf(quoted: Uint8Array, other: Uint8Array): Uint8Array {
  const at = quoted.length - 8 + 2
  return Uint8Array.from(quoted, (byte, index) => (index === at || index === at + 1 ? (other[index] ?? 0) : byte))
}

function masquerade(f: Family): PacketCase[] {
  const pod = at(f.maskedPod, PORT)
  const masked = at(f.node, NAT_PORT)
  const server = at(f.client, 443)
  const echo = f.v4 ? { ask: 8, answer: 0 } : { ask: 128, answer: 129 }
  const id = (number: number) => number * 0x10000 + 7
  return [
    {
      name: `${f.name}: to the outside as this node, answers back to the pod`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(pod, server, { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_host',
          packet: tcp(server, masked, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(server, pod, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'ACK',
          through: 'from_workload',
          packet: tcp(pod, server, { flags: 'A' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'A', ttl: 63 }),
        },
        {
          say: 'another pod port: there is no further port for this server',
          through: 'from_workload',
          packet: tcp(at(f.maskedPod, PORT + 1), server, { flags: 'S' }),
          action: 'drop',
          reason: 'DROP_PORT_COLLISION',
        },
        {
          say: 'the port again for another server',
          through: 'from_workload',
          packet: tcp(at(f.maskedPod, PORT + 1), at(f.client, 444), { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, at(f.client, 444), { flags: 'S', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: an echo to the outside, and an error about it`,
      given: {},
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: icmp(f.maskedPod, f.client, { type: echo.ask, word: id(77) }),
          action: 'redirect',
          out: icmp(f.node, f.client, { type: echo.ask, word: id(NAT_PORT), ttl: 63 }),
        },
        {
          say: 'reply',
          through: 'from_host',
          packet: icmp(f.client, f.node, { type: echo.answer, word: id(NAT_PORT) }),
          action: 'redirect',
          out: icmp(f.client, f.maskedPod, { type: echo.answer, word: id(77), ttl: 63 }),
        },
        {
          say: 'time exceeded on the way',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, {
            type: f.v4 ? 11 : 3,
            body: l3(icmp(f.node, f.client, { type: echo.ask, word: id(NAT_PORT), ttl: 1 })),
          }),
          action: 'redirect',
          out: icmp(f.stranger, f.maskedPod, {
            type: f.v4 ? 11 : 3,
            body: checksumOf(
              l3(icmp(f.maskedPod, f.client, { type: echo.ask, word: id(77), ttl: 1 })),
              l3(icmp(f.node, f.client, { type: echo.ask, word: id(NAT_PORT), ttl: 1 })),
            ),
            ttl: 63,
          }),
        },
      ],
    },
    {
      name: `${f.name}: to a pod elsewhere with its own address`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(pod, at(f.remotePod, 80), { flags: 'S' }),
          action: 'redirect',
          out: tcp(pod, at(f.remotePod, 80), { flags: 'S', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: a pod whose address means nothing outside reaches a service whose endpoint is outside`,
      given: { backends: [{ addr: f.client, port: 443 }] },
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: udp(pod, at(f.vip, 80), { payload: 'x' }),
          action: 'redirect',
          out: udp(masked, server, { payload: 'x', ttl: 63 }),
        },
      ],
    },
  ]
}

function overlay(f: Family): PacketCase[] {
  const [pod, far, host] = [at(f.pod, PORT), at(f.overlayPod, 80), at(f.node, PORT)]
  const out = (from: string, inner: Uint8Array) =>
    tunnel(f.node, f.otherNode, { inner, vni: VNI, sport: tunnelPort({ src: from, dst: f.overlayPod, sport: PORT, dport: 80 }) })
  const back = (to: string, inner: Uint8Array) =>
    tunnel(f.otherNode, f.node, { inner, vni: VNI, sport: tunnelPort({ src: f.overlayPod, dst: to, sport: 80, dport: PORT }) })
  return [
    {
      name: `${f.name}: to a pod that only the other node can reach: in the tunnel, both ways`,
      given: {},
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: udp(pod, far, { payload: 'x' }),
          action: 'redirect',
          out: out(f.pod, udp(pod, far, { payload: 'x', ttl: 63 })),
        },
        {
          say: 'answer',
          through: 'from_host',
          packet: back(f.pod, udp(far, pod, { payload: 'y', ttl: 63 })),
          action: 'redirect',
          out: udp(far, pod, { payload: 'y', ttl: 63 }),
        },
        {
          say: 'from the host itself',
          through: 'to_host',
          packet: udp(host, far, { payload: 'x' }),
          action: 'redirect',
          out: out(f.node, udp(host, far, { payload: 'x' })),
        },
        {
          say: 'answer to the host',
          through: 'from_host',
          packet: back(f.node, udp(far, host, { payload: 'y', ttl: 63 })),
          action: 'pass',
          out: udp(far, host, { payload: 'y', ttl: 63 }),
        },
        {
          say: 'from the host a while later',
          through: 'to_host',
          packet: udp(host, far, { payload: 'z' }),
          action: 'redirect',
          age: A_WHILE,
          out: out(f.node, udp(host, far, { payload: 'z' })),
        },
      ],
    },
    {
      name: `${f.name}: a flow in the overlay follows the route to its node`,
      given: {},
      steps: [
        { say: 'one', through: 'from_workload', packet: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x' }), action: 'redirect' },
        {
          say: 'two',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x' }),
          action: 'redirect',
          age: A_WHILE,
          overlayBy: f.thirdNode,
          out: tunnel(f.node, f.thirdNode, {
            inner: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x', ttl: 63 }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.overlayPod, sport: PORT, dport: 80 }),
          }),
        },
      ],
    },
  ]
}

function believed(f: Family): PacketCase[] {
  return [
    {
      name: `${f.name}: a pod sends with its own address only`,
      given: {},
      steps: [
        {
          say: "another pod's flow",
          through: 'from_workload',
          packet: tcp(at(f.elsewherePod, PORT), at(f.pod, 80), { flags: 'S' }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
        {
          say: "a stranger's",
          through: 'from_workload',
          packet: udp(at(f.stranger, PORT), at(f.pod, 80), { payload: 'x' }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
        {
          say: 'the flow that is there came from the network',
          through: 'from_host',
          packet: udp(at(f.client, PORT), at(f.pod, 80), { payload: 'x' }),
          action: 'redirect',
        },
        {
          say: 'so a pod cannot send as if it were its client',
          through: 'from_workload',
          packet: udp(at(f.client, PORT), at(f.pod, 80), { payload: 'x' }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
      ],
    },
    {
      name: `${f.name}: from the network: there must be a way back`,
      given: {},
      steps: [
        {
          say: 'from nowhere',
          through: 'from_host',
          packet: tcp(at(f.lost, PORT), at(f.pod, 80), { flags: 'S' }),
          action: 'drop',
          reason: 'DROP_REVERSE_PATH',
        },
      ],
    },
    {
      name: `${f.name}: a service's address on a port that it does not have is refused`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.bareVip, 81), { flags: 'S' }),
          action: 'redirect',
          reason: 'DROP_STRAY_SERVICE',
          out: tcp(at(f.bareVip, 81), at(f.pod, PORT), { flags: 'RA', seq: 0, ack: 1001, window: 0 }),
        },
      ],
    },
    {
      name: `${f.name}: an ICMP error to a service address does not circle`,
      given: {},
      steps: [
        {
          say: 'error',
          through: 'from_host',
          packet: icmp(f.client, f.bareVip, {
            ...(f.v4 ? { type: 3, code: 1 } : { type: 1, code: 0 }),
            body: l3(tcp(at(f.bareVip, 81), at(f.client, PORT), { flags: 'SA' })),
          }),
          action: 'drop',
        },
      ],
    },
    {
      name: `${f.name}: host to a service, backend here whose MAC is not known yet: never out of the device to the network`,
      given: { backends: [{ addr: f.elsewherePod, port: 8080 }] },
      steps: [{ say: 'datagram', through: 'to_host', packet: udp(at(f.node, PORT), at(f.vip, 80), { payload: 'x' }), action: 'redirect' }],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...masquerade(f), ...overlay(f), ...believed(f)])
