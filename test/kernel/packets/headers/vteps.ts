// SPDX-License-Identifier: Apache-2.0
/** The tunnel to a node of an older version: its device takes frames for its own address alone. Layer: test. */
import { tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 47_100
const MAC = '66:0a:f5:01:00:02'
const OTHER_MAC = '66:0a:f5:01:00:09'

function forFamily(f: Family): PacketCase[] {
  const [from, to] = [at(f.pod, PORT), at(f.overlayPod, 80)]
  const sport = tunnelPort({ src: f.pod, dst: f.overlayPod, sport: PORT, dport: 80 })
  const packet = (ttl: number) => udp(from, to, { payload: 'x', ttl })
  const sent = (mac: string | undefined) =>
    ['first', 'later'].map((say): Step => ({
      ...{ say, through: 'from_workload', packet: packet(64), action: 'redirect' },
      out: tunnel(f.node, f.otherNode, { inner: packet(63), vni: VNI, sport, ...(mac !== undefined && { mac }) }),
    }))
  const answer = udp(to, from, { ttl: 63 })
  const back = tunnel(f.otherNode, f.node, { inner: answer, vni: VNI, sport, mac: OTHER_MAC })
  return [
    {
      name: `${f.name}: frames in the tunnel are for the device of a node of an older version, and ours are for any`,
      given: { vteps: { [f.otherNode]: MAC } },
      steps: [...sent(MAC), { say: 'the answer', through: 'from_host', packet: back, action: 'redirect', out: answer }],
    },
    {
      name: `${f.name}: frames in the tunnel to a node of this version are for no device, beside one of an older version`,
      given: { vteps: { [f.thirdNode]: MAC } },
      steps: sent(undefined),
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
