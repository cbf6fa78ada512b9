// SPDX-License-Identifier: Apache-2.0
/** Traffic class: ECN goes into the tunnel and comes out of it as RFC 6040 says, for DSCP there is a setting.
 * Layer: test. */
import { tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 47_000
const [NONE, ECT1, ECT0, CE] = [0, 1, 2, 3] as const
const NAMES = ['Not-ECT', 'ECT(1)', 'ECT(0)', 'CE']
/** By what is inside, then by the header: what comes out, RFC 6040 figure 4; undefined: nothing does. */
const TABLE: Readonly<Record<number, Readonly<Record<number, number | undefined>>>> = {
  [NONE]: { [NONE]: NONE, [ECT0]: NONE, [ECT1]: NONE, [CE]: undefined },
  [ECT0]: { [NONE]: ECT0, [ECT0]: ECT0, [ECT1]: ECT1, [CE]: CE },
  [ECT1]: { [NONE]: ECT1, [ECT0]: ECT1, [ECT1]: ECT1, [CE]: CE },
  [CE]: { [NONE]: CE, [ECT0]: CE, [ECT1]: CE, [CE]: CE },
}
/** AF41 */
const DSCP = 0x88

function into(f: Family, { copies }: { readonly copies: boolean }): PacketCase {
  const [from, to] = [at(f.pod, PORT), at(f.overlayPod, 80)]
  const sport = tunnelPort({ src: f.pod, dst: f.overlayPod, sport: PORT, dport: 80 })
  return {
    name: `${f.name}: the tunnel's header has the ECN of what is inside${copies ? ', and its DSCP' : ', and no DSCP'}`,
    given: {},
    steps: [NONE, ECT1, ECT0, CE].flatMap((ecn) =>
      ['first', 'later'].map((say): Step => {
        const packet = (ttl: number) => udp(from, to, { payload: 'x', tos: DSCP | ecn, ttl })
        const out = tunnel(f.node, f.otherNode, { inner: packet(63), vni: VNI, sport, tos: copies ? DSCP | ecn : ecn })
        return { say: `${NAMES[ecn] ?? ''}, ${say}`, through: 'from_workload', packet: packet(64), action: 'redirect', out }
      }),
    ),
  }
}

function outOf(f: Family): PacketCase {
  const [from, to] = [at(f.overlayPod, PORT), at(f.pod, 80)]
  const sport = tunnelPort({ src: f.overlayPod, dst: f.pod, sport: PORT, dport: 80 })
  const inner = (ecn: number) => udp(from, to, { payload: 'x', tos: DSCP | ecn, ttl: 63 })
  return {
    name: `${f.name}: what the network marks on the tunnel's header comes to the packet inside, its DSCP does not`,
    given: {},
    steps: Object.entries(TABLE).flatMap(([inside, row]) =>
      Object.entries(row).map(([outside, ecn]): Step => {
        const packet = tunnel(f.otherNode, f.node, { inner: inner(Number(inside)), vni: VNI, sport, tos: 0x40 | Number(outside) })
        const say = `${NAMES[Number(inside)] ?? ''} inside ${NAMES[Number(outside)] ?? ''}`
        if (ecn === undefined) return { say, through: 'from_host', packet, action: 'drop', reason: 'DROP_TUNNEL_ECN' }
        return { say, through: 'from_host', packet, action: 'redirect', out: inner(ecn) }
      }),
    ),
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [into(f, { copies: false }), outOf(f)])
/** Where DSCP is copied as well. */
export const copied: readonly PacketCase[] = families.map((f) => into(f, { copies: true }))
