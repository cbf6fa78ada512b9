// SPDX-License-Identifier: Apache-2.0
/** A UDP checksum that comes out as 0 is sent as all ones. Layer: test. */
import { tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NAT_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

/** a payload with which the UDP checksum is 0, sent as 0xffff */
function allOnes(make: (payload: Uint8Array) => Uint8Array, checkAt: number): Uint8Array {
  for (let i = 0; i < 65536; i++) {
    const payload = Uint8Array.from([i >> 8, i & 255])
    const frame = make(payload)
    if (frame[checkAt] === 0xff && frame[checkAt + 1] === 0xff) return payload
  }
  throw new Error('none')
}

function checksums(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const moved = at(f.client, NAT_PORT)
  const pod = at(f.pod, 8080)
  const vip = at(f.vip, 80)
  const backends = [{ addr: f.pod, port: 8080 }]
  const sport = tunnelPort({ src: f.client, dst: f.pod, sport: PORT, dport: 8080 })
  const by = (node: string, packet: Uint8Array) => tunnel(node, f.node, { inner: packet, vni: VNI, sport })
  const hairpin = allOnes((payload) => udp(at(f.pod, PORT), vip, { payload }), 14 + (f.v4 ? 20 : 40) + 6)
  const lane = allOnes((payload) => udp(c, pod, { payload }), 14 + (f.v4 ? 20 : 40) + 6)
  return [
    {
      name: `${f.name}: UDP checksum of all ones, to itself by a service`,
      given: { backends },
      steps: [
        {
          say: 'datagram',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), vip, { payload: hairpin }),
          action: 'redirect',
          out: udp(at(f.vip, PORT), pod, { payload: hairpin, ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: UDP checksum of all ones, in a zone of its own`,
      given: {},
      steps: [
        {
          say: 'by the other node',
          through: 'from_host',
          packet: by(f.otherNode, udp(c, pod, { payload: 'x', ttl: 63 })),
          action: 'redirect',
        },
        {
          say: 'directly',
          through: 'from_host',
          packet: udp(c, pod, { payload: lane }),
          action: 'redirect',
          out: udp(moved, pod, { payload: lane, ttl: 63 }),
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(checksums)
