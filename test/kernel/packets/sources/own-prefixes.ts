// SPDX-License-Identifier: Apache-2.0
/** Addresses of a prefix that the kernel takes for this node as a whole: they have no rows, and are the node's own.
 * Layer: test. */
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { policy } from '../policy/policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 44_000
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
const KERNELS = { action: 'pass', out: 'same' } as const

type End = Pick<Step, 'action' | 'reason' | 'out'>

function by(through: Step['through']): (say: string, packet: Uint8Array, end: End) => Step {
  return (say, packet, end) => ({ say, through, packet, ...end })
}

const [fromHost, fromPod, toPod] = [by('from_host'), by('from_workload'), by('to_workload')]

function casesOf(f: Family): PacketCase[] {
  const [masked, pod, client] = [at(f.maskedPod, PORT), at(f.pod, PORT), at(f.client, PORT)]
  const [own, nodePort] = [at(f.prefixOwn, 53), at(f.prefixOwn, NODE_PORT)]
  const given = { backends: [{ addr: f.secondPod, port: 8080 }] }
  const [answer, toBackend] = [udp(nodePort, client, { ttl: 63 }), udp(client, at(f.secondPod, 8080), { ttl: 63 })]
  return [
    {
      name: `${f.name}: the node hears a masqueraded pod's own address at an address of a prefix of its own`,
      given,
      steps: [fromPod('asks', udp(masked, own), KERNELS), toPod('is answered', udp(own, masked), KERNELS)],
    },
    {
      name: `${f.name}: node ports are served at addresses of a prefix of the node`,
      given,
      steps: [
        fromHost('a client', udp(client, nodePort), { action: 'redirect', out: toBackend }),
        fromPod('is answered', udp(at(f.secondPod, 8080), client), { action: 'redirect', out: answer }),
        { ...fromHost('the client again, later', udp(client, nodePort), { action: 'redirect', out: toBackend }), age: A_WHILE },
        fromPod('a pod', udp(pod, nodePort), { action: 'redirect', out: udp(pod, at(f.secondPod, 8080), { ttl: 63 }) }),
      ],
    },
    {
      name: `${f.name}: no packet from the network comes from a prefix of the node`,
      given,
      steps: [at(f.node, 80), at(f.pod, 80), nodePort, at(f.overlayPod, 80)].flatMap((to) => [
        fromHost(`datagram to ${to}`, udp(own, to), SPOOFED),
        fromHost(`SYN to ${to}`, tcp(own, to, { flags: 'S' }), SPOOFED),
      ]),
    },
    {
      name: `${f.name}: the node reaches its pods from such an address, whatever their rules`,
      given: { policies: [policy('closed', { of: 'pod', ingress: [] })] },
      steps: [
        toPod('asks', udp(own, pod), KERNELS),
        fromPod('answers', udp(pod, own), KERNELS),
        toPod('a client', udp(client, pod), { action: 'drop', reason: 'DROP_POLICY' }),
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(casesOf)
