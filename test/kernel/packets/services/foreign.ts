// SPDX-License-Identifier: Apache-2.0
/** A service's address that is a real host's as well: what is no part of the service goes to the host. Layer: test. */
import { icmp, l3, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { Given, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { policy } from '../policy/policies.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 47_000
const STRAY = { action: 'redirect', reason: 'DROP_STRAY_SERVICE' } as const

/** A service with such an address, which has port 53. */
function named(addr: string, f: Family): Given {
  return { backends: [{ addr: f.secondPod, port: 8080 }], frontends: [at(addr, 53)], external: [addr] }
}

interface Packets {
  readonly say: string
  readonly make: (from: string, to: string, ttl?: number) => Uint8Array
}

/** None of which is the service's. */
function others(f: Family): readonly Packets[] {
  const { echo } = numbers(f)
  return [
    { say: 'SYN', make: (from, to, ttl = 64) => tcp(at(from, PORT), at(to, 99), { flags: 'S', ttl }) },
    { say: 'datagram', make: (from, to, ttl = 64) => udp(at(from, PORT), at(to, 99), { ttl }) },
    { say: 'ping', make: (from, to, ttl = 64) => icmp(from, to, { type: echo, word: 0x0707_0001, ttl }) },
  ]
}

function fromHere(f: Family): PacketCase[] {
  const { echo } = numbers(f)
  const hosts: readonly (readonly [say: string, addr: string])[] = [
    ['a neighbour', f.client],
    ['a pod elsewhere', f.remotePod],
  ]
  const sends = (say: string, packet: Uint8Array, out: Uint8Array): Step => ({
    say,
    through: 'from_workload',
    packet,
    action: 'redirect',
    out,
  })
  const masked = [
    [
      'SYN',
      tcp(at(f.maskedPod, PORT), at(f.client, 99), { flags: 'S' }),
      tcp(at(f.node, NAT_PORT), at(f.client, 99), { flags: 'S', ttl: 63 }),
    ],
    [
      'ping',
      icmp(f.maskedPod, f.client, { type: echo, word: 7 * 0x10000 }),
      icmp(f.node, f.client, { type: echo, word: NAT_PORT * 0x10000, ttl: 63 }),
    ],
  ] as const
  const overlaid = (from: string, packet: Uint8Array): Uint8Array =>
    tunnel(f.node, f.otherNode, { inner: packet, vni: VNI, sport: tunnelPort({ src: from, dst: f.overlayPod, sport: PORT, dport: 99 }) })
  const [, datagram] = others(f)
  const asked = udp(at(f.client, PORT), at(f.pod, 80))
  const error = (ttl: number): Uint8Array => icmp(f.pod, f.client, { type: numbers(f).unreachable[0], code: 3, body: l3(asked), ttl })
  return [
    ...hosts.map(([say, addr]): PacketCase => ({
      name: `${f.name}: on other ports than a service's, pods and the node reach ${say} whose address it names`,
      given: named(addr, f),
      steps: [
        ...others(f).map(({ say: what, make }) => sends(what, make(f.pod, addr), make(f.pod, addr, 63))),
        ...others(f).map(({ say: what, make }): Step => {
          return { say: `${what} of the node`, through: 'to_host', packet: make(f.node, addr), action: 'pass', out: 'same' }
        }),
        sends('the port is the service’s', udp(at(f.pod, PORT), at(addr, 53)), udp(at(f.pod, PORT), at(f.secondPod, 8080), { ttl: 63 })),
      ],
    })),
    {
      name: `${f.name}: a pod that leaves as its node reaches a host whose address a service names`,
      given: named(f.client, f),
      steps: masked.map(([say, packet, out]) => sends(say, packet, out)),
    },
    {
      name: `${f.name}: a pod in the overlay whose address a service names is reached in the tunnel`,
      given: named(f.overlayPod, f),
      steps: [
        sends(
          'a pod',
          udp(at(f.pod, PORT), at(f.overlayPod, 99)),
          overlaid(f.pod, udp(at(f.pod, PORT), at(f.overlayPod, 99), { ttl: 63 })),
        ),
        {
          say: 'the node',
          through: 'to_host',
          packet: udp(at(f.node, PORT), at(f.overlayPod, 99)),
          action: 'redirect',
          out: overlaid(f.node, udp(at(f.node, PORT), at(f.overlayPod, 99))),
        },
      ],
    },
    {
      name: `${f.name}: policy is asked about a host whose address a service names`,
      given: { ...named(f.remotePod, f), policies: [policy('out', { of: 'pod', egress: [] })] },
      steps: others(f).map(({ say, make }): Step => {
        return { say, through: 'from_workload', packet: make(f.pod, f.remotePod), action: 'drop', reason: 'DROP_POLICY' }
      }),
    },
    {
      name: `${f.name}: a pod tells a host whose address a service names that its port is closed`,
      given: named(f.client, f),
      steps: [
        { say: 'datagram', through: 'from_host', packet: asked, action: 'redirect' },
        { say: 'error', through: 'from_workload', packet: error(64), action: 'redirect', out: error(63) },
      ],
    },
    {
      name: `${f.name}: the address of a cluster service has no host`,
      given: {},
      steps: (['from_workload', 'to_host', 'from_host'] as const).map((through): Step => {
        const from = { from_workload: f.pod, to_host: f.node, from_host: f.client }[through]
        return { say: 'datagram', through, packet: datagram?.make(from, f.bareVip) ?? new Uint8Array(), ...STRAY }
      }),
    },
  ]
}

/** Addresses of this node and its pods. */
function ofHere(f: Family): PacketCase[] {
  const before = { say: 'data to it', through: 'from_workload', action: 'redirect' } as const
  const [asker, server] = [at(f.pod, PORT), at(f.client, 53)]
  const data = (ttl: number): Uint8Array => tcp(asker, server, { flags: 'PA', payload: 'x', ttl })
  const answers: Step = {
    say: 'data from it',
    through: 'from_host',
    packet: tcp(server, asker, { flags: 'PA', payload: 'x' }),
    action: 'redirect',
  }
  const ends: readonly (readonly [whose: string, addr: string, action: 'pass' | 'redirect'])[] = [
    ['a pod of the node', f.maskedPod, 'redirect'],
    ['the node', f.quietOwn, 'pass'],
  ]
  return [
    ...ends.map(([whose, addr, action]): PacketCase => ({
      name: `${f.name}: on other ports than a service's, ${whose} whose address it names is reached by pods and the network`,
      given: named(addr, f),
      steps: [
        ...others(f).map(({ say, make }): Step => ({ say, through: 'from_workload', packet: make(f.pod, addr), action })),
        ...others(f).map(({ say, make }): Step => ({ say, through: 'from_host', packet: make(f.client, addr), action })),
        {
          say: 'the port is the service’s',
          through: 'from_workload',
          packet: udp(asker, at(addr, 53)),
          action: 'redirect',
          out: udp(asker, at(f.secondPod, 8080), { ttl: 63 }),
        },
      ],
    })),
    {
      name: `${f.name}: a connection to a host stays with it when a service takes its address and port`,
      given: {},
      steps: [
        { ...before, say: 'SYN', packet: tcp(asker, server, { flags: 'S' }) },
        { ...answers, say: 'SYN-ACK', packet: tcp(server, asker, { flags: 'SA' }) },
        { ...before, say: 'ACK', packet: tcp(asker, server, { flags: 'A' }) },
        { ...answers, given: named(f.client, f) },
        { ...answers, say: 'data from it after a while', age: A_WHILE },
        { ...before, packet: data(64), out: data(63), age: A_WHILE },
        {
          ...before,
          say: 'a new one is the service’s',
          packet: tcp(at(f.pod, PORT + 1), server, { flags: 'S' }),
          out: tcp(at(f.pod, PORT + 1), at(f.secondPod, 8080), { flags: 'S', ttl: 63 }),
        },
      ],
    },
  ]
}

function fromNetwork(f: Family): PacketCase[] {
  const passes = { through: 'from_host', action: 'pass', out: 'same' } as const
  const { unreachable } = numbers(f)
  const error = (to: string): Uint8Array =>
    icmp(f.stranger, to, { type: unreachable[0], code: unreachable[1], body: l3(udp(at(to, 99), at(f.stranger, 80))) })
  const last = (to: string): Uint8Array =>
    udp(at(f.stranger, PORT), at(to, 99), { payload: 'x'.repeat(64), id: 55, fragment: { offset: 32, more: false } })
  return [
    {
      name: `${f.name}: from the network to a host whose address a service names: what a router would send back is refused`,
      given: named(f.remotePod, f),
      steps: [
        ...others(f).map(({ say, make }): Step => ({ say, through: 'from_host', packet: make(f.stranger, f.remotePod), ...STRAY })),
        { say: 'an error', through: 'from_host', packet: error(f.remotePod), action: 'drop', reason: 'DROP_STRAY_SERVICE' },
        { say: 'a last fragment', through: 'from_host', packet: last(f.remotePod), action: 'drop', reason: 'COUNT_FRAGMENT_HELD' },
      ],
    },
    ...[
      { say: 'is a neighbour by another device', addr: f.client },
      { say: 'has no route, which the kernel answers', addr: f.lost },
    ].map(({ say, addr }): PacketCase => ({
      name: `${f.name}: from the network to a host whose address a service names: it passes where that ${say}`,
      given: named(addr, f),
      steps: [
        ...others(f).map(({ say: what, make }): Step => ({ ...passes, say: what, packet: make(f.stranger, addr) })),
        { ...passes, say: 'an error', packet: error(addr) },
        { ...passes, say: 'a last fragment', packet: last(addr) },
      ],
    })),
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...fromHere(f), ...ofHere(f), ...fromNetwork(f)])
