// SPDX-License-Identifier: Apache-2.0
/** Packet lives: pod to pod, services, node ports near, in both families. Layer: test. */
import { tcp, udp } from '../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { NODE_PORT, at, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000
const WIRE = { src: '02:00:00:00:50:01', dst: '02:00:00:00:99:99' }
const NOBODY = { src: '00:00:00:00:00:00', dst: '00:00:00:00:00:00' }

function handshake(
  f: Family,
  ends: { readonly client: string; readonly server: string },
  through: { readonly there: Step['through']; readonly back: Step['through'] },
): Step[] {
  const there = (flags: string, ttl: number, extra = {}) => tcp(at(ends.client, PORT), at(ends.server, 80), { flags, ttl, ...extra })
  const back = (flags: string, ttl: number, extra = {}) => tcp(at(ends.server, 80), at(ends.client, PORT), { flags, ttl, ...extra })
  return [
    { say: `${f.name} SYN`, through: through.there, packet: there('S', 64), action: 'redirect', out: there('S', 63) },
    { say: 'SYN at the destination', through: 'to_workload', packet: there('S', 63), action: 'pass', out: 'same' },
    {
      say: 'SYN-ACK',
      through: through.back,
      packet: back('SA', 64, { ack: 1001 }),
      action: 'redirect',
      out: back('SA', 63, { ack: 1001 }),
    },
    { say: 'ACK', through: through.there, packet: there('A', 64, { seq: 1001 }), action: 'redirect', out: there('A', 63, { seq: 1001 }) },
    {
      say: 'data',
      through: through.there,
      packet: there('PA', 64, { seq: 1001, payload: 'hello' }),
      action: 'redirect',
      out: there('PA', 63, { seq: 1001, payload: 'hello' }),
    },
    {
      say: 'answer',
      through: through.back,
      packet: back('PA', 64, { payload: 'world' }),
      action: 'redirect',
      out: back('PA', 63, { payload: 'world' }),
    },
  ]
}

/** Steps of a service flow: what the client sends is seen by the backend as sent to it, and the other way round. */
function service(options: {
  readonly client: string
  readonly front: string
  readonly back: string
  readonly there: Step['through']
  readonly proto: typeof tcp | typeof udp
}): Step[] {
  const { client, front, back, proto } = options
  const c = at(client, PORT)
  const packet = (from: string, to: string, more: object) =>
    proto === tcp ? tcp(from, to, more) : udp(from, to, { payload: 'x', ...more })
  const step = (
    say: string,
    through: Step['through'],
    packets: { readonly in: [string, string]; readonly out: [string, string]; readonly flags: string },
  ): Step => ({
    say,
    through,
    packet: packet(...packets.in, { flags: packets.flags, ttl: 64 }),
    action: 'redirect',
    out: packet(...packets.out, { flags: packets.flags, ttl: 63 }),
  })
  return [
    step('first packet', options.there, { in: [c, front], out: [c, back], flags: 'S' }),
    step('answer', 'from_workload', { in: [back, c], out: [front, c], flags: 'SA' }),
    step('second packet', options.there, { in: [c, front], out: [c, back], flags: 'A' }),
    step('second answer', 'from_workload', { in: [back, c], out: [front, c], flags: 'A' }),
  ]
}

type Brought = Pick<Step, 'through' | 'packet'>

function broughtByKernel(f: Family): Step[] {
  const [client, server] = [at(f.client, PORT), at(f.pod, 80)]
  const there = (flags: string, more = {}): Brought => ({
    through: 'to_workload',
    packet: tcp(client, server, { flags, ttl: 63, ...more }),
  })
  const back = (flags: string, more = {}): Brought => ({ through: 'from_workload', packet: tcp(server, client, { flags, ...more }) })
  return [
    { say: `${f.name} SYN`, ...there('S'), action: 'pass', out: 'same' },
    { say: 'SYN-ACK', ...back('SA', { ack: 1001 }), action: 'pass', out: 'same' },
    { say: 'ACK', ...there('A', { seq: 1001 }), action: 'pass', out: 'same' },
    { say: 'answer', ...back('PA', { payload: 'world' }), action: 'pass', out: 'same' },
  ]
}

function forFamily(f: Family): PacketCase[] {
  const local = { backends: [{ addr: f.pod, port: 8080 }] }
  return [
    {
      name: `${f.name}: pod to pod on this node`,
      given: {},
      steps: handshake(f, { client: f.pod, server: f.secondPod }, { there: 'from_workload', back: 'from_workload' }).filter(
        (s) => s.through !== 'to_workload',
      ),
    },
    {
      name: `${f.name}: outside to pod, no translation`,
      given: {},
      steps: handshake(f, { client: f.client, server: f.pod }, { there: 'from_host', back: 'from_workload' }),
    },
    {
      name: `${f.name}: outside to pod, brought by the kernel, which may have translated it: the answers pass there too`,
      given: {},
      steps: broughtByKernel(f),
    },
    {
      name: `${f.name}: pod to pod on the other node`,
      given: {},
      steps: handshake(f, { client: f.pod, server: f.remotePod }, { there: 'from_workload', back: 'from_host' }).filter(
        (s) => s.through !== 'to_workload',
      ),
    },
    ...[tcp, udp].flatMap((proto): PacketCase[] => [
      {
        name: `${f.name} ${proto.name}: pod to cluster IP, backend on this node`,
        given: local,
        steps: service({ client: f.secondPod, front: at(f.vip, 80), back: at(f.pod, 8080), there: 'from_workload', proto }),
      },
      {
        name: `${f.name} ${proto.name}: outside to node port, backend on this node`,
        given: local,
        steps: service({ client: f.client, front: at(f.node, NODE_PORT), back: at(f.pod, 8080), there: 'from_host', proto }),
      },
      {
        name: `${f.name} ${proto.name}: outside to cluster IP`,
        given: local,
        steps: service({ client: f.client, front: at(f.vip, 80), back: at(f.pod, 8080), there: 'from_host', proto }),
      },
    ]),
    {
      name: `${f.name}: a pod that is its own backend sees the service as its peer`,
      given: local,
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.vip, PORT), at(f.pod, 8080), { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(at(f.pod, 8080), at(f.vip, PORT), { flags: 'SA' }),
          action: 'redirect',
          out: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'SA', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: UDP without checksum stays without`,
      given: local,
      steps: f.v4
        ? [
            {
              say: 'datagram',
              through: 'from_host',
              packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'abc', noChecksum: true }),
              action: 'redirect',
              out: udp(at(f.client, PORT), at(f.pod, 8080), { payload: 'abc', noChecksum: true, ttl: 63 }),
            },
          ]
        : [
            {
              say: 'datagram',
              through: 'from_host',
              packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'abc' }),
              action: 'redirect',
              out: udp(at(f.client, PORT), at(f.pod, 8080), { payload: 'abc', ttl: 63 }),
            },
          ],
    },
    {
      name: `${f.name}: what is not for us is left alone`,
      given: local,
      steps: [
        {
          say: 'to the node itself',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: "to one of the node's addresses that serves no node ports",
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.quietOwn, NODE_PORT), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: "to another station's address on the wire",
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), {
            flags: 'S',
            macs: { src: '02:00:00:00:00:01', dst: '02:00:00:00:00:77' },
          }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'transit',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.stranger, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: "the host's own",
          through: 'to_host',
          packet: tcp(at(f.node, PORT), at(f.client, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'pod to its node',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.node, 10250), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: backend in the host's network: answered through the host's own hooks`,
      given: { backends: [{ addr: f.node, port: 8080 }] },
      steps: [
        {
          say: 'SYN from outside',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' }),
          action: 'pass',
          out: tcp(at(f.client, PORT), at(f.node, 8080), { flags: 'S' }),
        },
        {
          say: 'SYN-ACK',
          through: 'to_host',
          packet: tcp(at(f.node, 8080), at(f.client, PORT), { flags: 'SA' }),
          action: 'pass',
          out: tcp(at(f.node, NODE_PORT), at(f.client, PORT), { flags: 'SA' }),
        },
        {
          say: 'SYN from a pod',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'pass',
          out: tcp(at(f.pod, PORT), at(f.node, 8080), { flags: 'S' }),
        },
        {
          say: 'SYN-ACK to the pod',
          through: 'to_workload',
          packet: tcp(at(f.node, 8080), at(f.pod, PORT), { flags: 'SA' }),
          action: 'pass',
          out: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'SA' }),
        },
      ],
    },
    {
      name: `${f.name}: the host reaches a service whose backend is itself: turned round on its way out, and so are the answers`,
      given: { backends: [{ addr: f.node, port: 8080 }] },
      steps: [
        {
          say: 'datagram',
          through: 'to_host',
          packet: udp(at(f.node, PORT), at(f.vip, 80), { payload: 'x', macs: WIRE }),
          action: 'redirect',
          out: udp(at(f.vip, PORT), at(f.node, 8080), { payload: 'x', macs: NOBODY }),
          macs: true,
        },
        {
          say: 'answer',
          through: 'to_host',
          packet: udp(at(f.node, 8080), at(f.vip, PORT), { payload: 'y', macs: WIRE }),
          action: 'redirect',
          out: udp(at(f.vip, 80), at(f.node, PORT), { payload: 'y', macs: NOBODY }),
          macs: true,
        },
      ],
    },
    {
      name: `${f.name}: a mid-flow packet to a service is no new flow`,
      given: local,
      steps: [
        {
          say: 'ACK',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
