// SPDX-License-Identifier: Apache-2.0
/** Frames with VLAN tags. Test runs have no tag beside the frame, as the kernel has the outermost: those here are
 * within. Layer: test. */
import { arp, concat, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { DENIED, opens, policy } from '../policy/policies.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'

const PORT = 41_000
const [Q, AD] = [0x8100, 0x88a8]

/** The frame with these tags, outermost first; default: of VLAN 0, with a priority. */
function tagged(frame: Uint8Array, ...tags: readonly (readonly [type: number, id?: number])[]): Uint8Array {
  const bytes = tags.flatMap(([type, id = 0]) => [type >> 8, type & 255, 0x60 | (id >> 8), id & 255])
  return concat([frame.subarray(0, 12), Uint8Array.from(bytes), frame.subarray(12)])
}

const PRIORITIES: Readonly<Record<string, readonly (readonly [number, number?])[]>> = {
  'a priority': [[Q]],
  "a provider's priority": [[AD]],
  'two of them': [[Q], [AD]],
}

function tags(f: Family): PacketCase[] {
  const client = at(f.client, PORT)
  const each = (of: (wrap: (frame: Uint8Array) => Uint8Array) => Step) =>
    Object.entries(PRIORITIES).map(([say, some]) => {
      const step = of((frame) => tagged(frame, ...some))
      return { ...step, say: `${step.say}, with ${say}` }
    })
  const front = at(f.node, NODE_PORT)
  const syn = tcp(client, at(f.pod, 81), { flags: 'S' })
  const inner = udp(client, at(f.pod, 80), { payload: 'hello' })
  const other = tagged(syn, [Q, 5])
  const many = tagged(syn, [Q], [Q], [Q], [Q], [Q], [Q])
  return [
    {
      name: `${f.name}: tags of VLAN 0 tell a priority and hide nothing from rules`,
      given: { policies: [...opens(80), policy('host', { of: HOST, ingress: [] })] },
      steps: [
        ...each((wrap) => ({ say: 'to a pod', through: 'from_host', packet: wrap(syn), ...DENIED })),
        ...each((wrap) => ({
          say: 'to the host',
          through: 'from_host',
          packet: wrap(tcp(client, at(f.node, 80), { flags: 'S' })),
          ...DENIED,
        })),
        ...each((wrap) => ({ say: 'of a pod', through: 'from_workload', packet: wrap(tcp(at(f.secondPod, 1), at(f.pod, 81))), ...DENIED })),
        ...each((wrap) => ({
          say: 'of a pod that says it is another',
          through: 'from_workload',
          packet: wrap(tcp(client, at(f.pod, 81))),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        })),
      ],
    },
    {
      name: `${f.name}: node ports and the tunnel take frames with tags of VLAN 0`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        ...each((wrap) => ({
          say: 'node port',
          through: 'from_host',
          packet: wrap(udp(client, front, { payload: 'hello' })),
          action: 'redirect',
          out: udp(client, at(f.pod, 8080), { payload: 'hello', ttl: 63 }),
        })),
        ...each((wrap) => ({
          say: 'tunnel',
          through: 'from_host',
          packet: wrap(tunnel(f.otherNode, f.node, { inner, vni: VNI, sport: 50_000 })),
          action: 'redirect',
          out: inner,
        })),
      ],
    },
    {
      name: `${f.name}: frames of another VLAN are left alone on the host, and dropped between a pod and its node`,
      given: { policies: [policy('host', { of: HOST, ingress: [] })] },
      steps: [
        { say: 'on the host', through: 'from_host', packet: other, action: 'pass', out: 'same' },
        { say: 'leaving', through: 'to_host', packet: other, action: 'pass', out: 'same' },
        { say: 'more priorities than are taken off', through: 'from_host', packet: many, action: 'drop', reason: 'DROP_VLAN' },
        ...(['from_workload', 'to_workload'] as const).flatMap((through): readonly Step[] => [
          { say: 'a VLAN', through, packet: other, action: 'drop', reason: 'DROP_VLAN' },
          { say: 'a VLAN behind a priority', through, packet: tagged(syn, [Q], [Q, 5]), action: 'drop', reason: 'DROP_VLAN' },
          {
            say: 'more priorities than are taken off',
            through,
            packet: many,
            action: 'drop',
            reason: 'DROP_VLAN',
          },
        ]),
      ],
    },
  ]
}

const neighbours: PacketCase = {
  name: 'IPv4: ARP of a pod with a tag of VLAN 0 has a sender of its own',
  given: {},
  steps: [
    {
      say: 'as another',
      through: 'from_workload',
      packet: tagged(
        arp({
          operation: 1,
          senderMac: '02:00:00:00:aa:01',
          sender: '10.10.1.77',
          targetMac: '00:00:00:00:00:00',
          target: '192.168.50.1',
          macs: { src: '02:00:00:00:aa:01', dst: 'ff:ff:ff:ff:ff:ff' },
        }),
        [Q],
      ),
      action: 'drop',
      reason: 'DROP_SPOOFED',
    },
  ],
}

export const cases: readonly PacketCase[] = [...families.flatMap(tags), neighbours]
