// SPDX-License-Identifier: Apache-2.0
/** What the node sends from an address and port where a service is reached: answers are the sender's, requests the
 * service's. Layer: test. */
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, NODE_PORT, at, devices, families } from '../../../../testkit/packets/cluster.ts'

const EXTERNAL_PORT = 5353

type End = Pick<Step, 'action' | 'out' | 'reason'>

const KERNELS: End = { action: 'pass', out: 'same' }
const fromHost = (say: string, packet: Uint8Array, end = KERNELS): Step => ({ say, through: 'from_host', packet, ...end })
const toHost = (say: string, packet: Uint8Array): Step => ({ say, through: 'to_host', packet, ...KERNELS })

function casesOf(f: Family): PacketCase[] {
  const given = { backends: [{ addr: f.pod, port: 8080 }], frontends: [at(f.node, EXTERNAL_PORT)] }
  const [peer, other] = [at(f.stranger, 7), at(f.client, 7)]
  const request = (from: string, own: string): Step => fromHost('a request of another', udp(from, own), { action: 'redirect' })
  const exchange = (own: string): Step[] => [
    toHost('asks', udp(own, peer)),
    fromHost('is answered', udp(peer, own)),
    request(other, own),
    { ...fromHost('is answered later', udp(peer, own)), age: A_WHILE },
    toHost('asks another', udp(own, at(f.otherNode, 7))),
    fromHost('which answers', udp(at(f.otherNode, 7), own)),
  ]
  const [nodePort, external] = [at(f.node, NODE_PORT), at(f.node, EXTERNAL_PORT)]
  return [
    { name: `${f.name}: a socket of the node that sends from a node port is answered`, given, steps: exchange(nodePort) },
    {
      name: `${f.name}: a socket of the node that sends from a node port, at an address of a local prefix, is answered`,
      given,
      steps: exchange(at(f.prefixOwn, NODE_PORT)),
    },
    {
      name: `${f.name}: a socket of the node that sends from a service's external address and port is answered`,
      given,
      steps: exchange(external),
    },
    {
      name: `${f.name}: a connection that the node opens from a node port is its own`,
      given,
      steps: [
        toHost('SYN', tcp(nodePort, peer, { flags: 'S' })),
        fromHost('SYN-ACK', tcp(peer, nodePort, { flags: 'SA' })),
        toHost('ACK', tcp(nodePort, peer, { flags: 'A' })),
        fromHost('data', tcp(peer, nodePort, { flags: 'PA', payload: 'x' })),
        fromHost('SYN of another', tcp(other, nodePort, { flags: 'S' }), { action: 'redirect' }),
      ],
    },
    {
      name: `${f.name}: what the kernel forwards as the node, from a node port, is answered`,
      given,
      steps: [
        { ...toHost('a container asks', udp(nodePort, peer)), arrived: devices.secondPod.name },
        fromHost('is answered', udp(peer, nodePort)),
      ],
    },
    {
      name: `${f.name}: without node ports on an address its flows are the kernel's alone`,
      given,
      steps: [
        {
          ...toHost('asks', udp(at(f.quietOwn, NODE_PORT), peer)),
          flows: [{ proto: 17, from: at(f.quietOwn, NODE_PORT), to: peer, gone: true }],
        },
        {
          ...toHost('asks from any other port', udp(at(f.node, 9), peer)),
          flows: [{ proto: 17, from: at(f.node, 9), to: peer, gone: true }],
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(casesOf)
