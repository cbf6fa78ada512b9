// SPDX-License-Identifier: Apache-2.0
/** Packets that may be cut, and do not fit the tunnel. Test runs show the last fragment: those before leave as copies
 * (test/lab/net/sizes.test.ts). Layer: test. */
import { tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { error, numbers } from '../icmp/errors.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 49_000
const MTU = 1450
/** of the datagram, in a fragment that fits: a multiple of 8 */
const PART = 1424

function cutting(f: Family): PacketCase {
  const [client, back] = [at(f.client, PORT), at(f.remotePod, 8080)]
  const payload = (bytes: number) => new Uint8Array(bytes).map((_, i) => i)
  const sport = tunnelPort({ src: f.client, dst: f.vip, sport: PORT, dport: 80 })
  const sent = (to: string, bytes: number, more: Parameters<typeof udp>[2] = {}) =>
    udp(client, to, { payload: payload(bytes), df: false, id: 7, ...more })
  const isCut = (say: string, packet: Uint8Array, last: Uint8Array): Step => ({
    say,
    through: 'from_host',
    packet,
    action: 'redirect',
    out: tunnel(f.node, f.otherNode, { inner: last, vni: VNI, sport }),
  })
  const isTold = (say: string, packet: Uint8Array): Step => ({
    say,
    through: 'from_host',
    packet,
    action: 'redirect',
    reason: 'DROP_TOO_BIG',
    out: error(f, { packet, to: f.client, kind: numbers(f).tooBig, mtu: MTU, from: f.vip }),
  })
  const front = at(f.vip, 80)
  const last = (bytes: number, offset: number, more = false) => sent(back, bytes, { ttl: 63, fragment: { offset, more } })
  const body = (bytes: number) => MTU - 20 - 8 + bytes
  return {
    name: 'IPv4: a datagram that may be cut and does not fit the tunnel leaves in fragments that do',
    given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
    steps: [
      isCut('one byte too long', sent(front, body(1)), last(body(1), PART)),
      isCut('as long as its device takes', sent(front, 1472), last(1472, PART)),
      isTold('it may not be cut', udp(client, front, { payload: payload(body(1)) })),
      isCut('a first fragment', sent(front, 1472, { fragment: { offset: 0, more: true } }), last(1472, PART, true)),
      // of the same datagram, known by its first
      isCut('and a later one', sent(front, 1472 + 1480, { fragment: { offset: 1480, more: false } }), last(1472 + 1480, 1480 + PART)),
      isTold('TCP is told, and sends again', tcp(client, front, { flags: 'S', payload: payload(1440), df: false })),
      isTold('options stand in the way', sent(front, body(1), { options: new Uint8Array(4).fill(1) })),
    ],
  }
}

export const cases: readonly PacketCase[] = families.filter(({ v4 }) => v4).map(cutting)
