// SPDX-License-Identifier: Apache-2.0
/** What pods send to their own node, which defaultEndpointToHostAction decides, and what it has no say in.
 * Layer: test. */
import { icmp, l3, tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { DENIED, policy } from './policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 44_000
const PASSED = { action: 'pass' } as const

/** By whichever of its addresses, and by a service that one of its own processes serves. */
function toItsNode(f: Family, end: typeof PASSED | typeof DENIED): PacketCase {
  const { echo } = numbers(f)
  const from = at(f.pod, PORT)
  const onLink = f.v4 ? '169.254.7.7' : 'fe80::7'
  const connects = (say: string, to: string): Step => {
    const flows = [{ proto: 6, from, to, gone: end !== PASSED }]
    return { say, through: 'from_workload', packet: tcp(from, to, { flags: 'S' }), ...end, flows }
  }
  const sends = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, ...end })
  return {
    name: `${f.name}: a pod ${end === PASSED ? 'reaches' : 'does not reach'} its own node`,
    given: { backends: [{ addr: f.node, port: 8080 }] },
    steps: [
      connects('SYN', at(f.node, 80)),
      connects('to another address', at(f.quietOwn, 80)),
      connects('to one that is of the link', at(onLink, 80)),
      sends('datagram', udp(from, at(f.node, 80))),
      sends('ping', icmp(f.pod, f.node, { type: echo, word: 0x0101_0001 })),
      sends('by a service', udp(from, at(f.vip, 80))),
      sends('by its node port', udp(at(f.pod, PORT + 1), at(f.node, NODE_PORT))),
    ],
  }
}

function dropped(f: Family): PacketCase[] {
  const { unreachable } = numbers(f)
  const from = at(f.pod, PORT)
  const [host, pod] = [at(f.node, PORT), at(f.pod, 80)]
  const asked = udp(host, at(f.pod, 81))
  const sends = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, action: 'redirect' })
  const answers = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, ...PASSED })
  const reaches = (say: string, packet: Uint8Array): Step => ({ say, through: 'to_workload', packet, ...PASSED })
  return [
    {
      name: `${f.name}: a pod does not reach its own node, though its policy lets it out`,
      given: { policies: [policy('out', { of: 'pod', egress: [{}] })] },
      steps: [{ ...sends('SYN', tcp(from, at(f.node, 80), { flags: 'S' })), ...DENIED }],
    },
    {
      name: `${f.name}: a pod that does not reach its own node reaches all other addresses`,
      given: { backends: [{ addr: f.secondPod, port: 8080 }] },
      steps: [
        sends('another pod', tcp(from, at(f.secondPod, 80), { flags: 'S' })),
        sends('a pod elsewhere', tcp(from, at(f.remotePod, 80), { flags: 'S' })),
        sends('another node', tcp(from, at(f.otherNode, 80), { flags: 'S' })),
        sends('the world', tcp(from, at(f.client, 80), { flags: 'S' })),
        sends('a service', udp(from, at(f.vip, 80))),
        sends('a service by a port of its node', udp(at(f.pod, PORT + 1), at(f.node, NODE_PORT))),
      ],
    },
    {
      name: `${f.name}: a node that its pod does not reach reaches the pod, and is answered`,
      given: {},
      steps: [
        reaches('SYN', tcp(host, pod, { flags: 'S' })),
        answers('SYN-ACK', tcp(pod, host, { flags: 'SA' })),
        reaches('ACK', tcp(host, pod, { flags: 'A' })),
        answers('data', tcp(pod, host, { flags: 'PA', payload: 'x' })),
        { ...answers('data after a while', tcp(pod, host, { flags: 'PA', payload: 'x' })), age: A_WHILE },
        { ...answers('SYN by the same ports', tcp(pod, host, { flags: 'S' })), ...DENIED },
        answers('data still', tcp(pod, host, { flags: 'PA', payload: 'x' })),
        reaches('datagram', asked),
        answers('its port is closed', icmp(f.pod, f.node, { type: unreachable[0], code: unreachable[1], body: l3(asked) })),
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.map((f) => toItsNode(f, PASSED))

/** With Drop. */
export const dropCases: readonly PacketCase[] = families.flatMap((f) => [toItsNode(f, DENIED), ...dropped(f)])
