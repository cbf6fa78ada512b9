// SPDX-License-Identifier: Apache-2.0
/** Connections of the proxy before us between pods of two nodes, in the tunnel: they stay with the kernel, and programs
 * put its packets in and take them out. Layer: test. */
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, at, families, VNI } from '../../../../testkit/packets/cluster.ts'
import { tcp, tunnel } from '../../../../testkit/packets/packet.ts'
import { tunnelPort } from '../tunnel-port.ts'

const PORT = 40000
/** the kernel's, for what one of its devices brought */
const FROM_A_POD = { arrived: 'npl0', mark: 0x0400_0000 }

function forFamily(f: Family): PacketCase[] {
  const backends = [{ addr: f.overlayPod, port: 8080 }]
  const pod = at(f.pod, PORT)
  const service = at(f.vip, 80)
  const backend = at(f.overlayPod, 8080)
  const kernels = { action: 'pass', out: 'same' } as const
  const leaves = (flags: string): Step => ({
    say: 'the kernel has translated it',
    through: 'to_host',
    ...FROM_A_POD,
    packet: tcp(pod, backend, { flags }),
    action: 'redirect',
    out: tunnel(f.node, f.otherNode, {
      inner: tcp(pod, backend, { flags }),
      vni: VNI,
      sport: tunnelPort({ src: f.pod, dst: f.overlayPod, sport: PORT, dport: 8080 }),
    }),
  })
  const comes = (flags: string, to = pod): Step => ({
    say: 'the answer',
    through: 'from_host',
    packet: tunnel(f.otherNode, f.node, { inner: tcp(backend, to, { flags }), vni: VNI, sport: 50000 }),
    action: 'pass',
    out: tcp(backend, to, { flags }),
  })
  const asks = (flags: string): Step => ({
    say: 'request',
    through: 'from_workload',
    packet: tcp(pod, service, { flags }),
    ...kernels,
  })
  return [
    {
      name: `${f.name}: in the tunnel a pod's connection to a service of the proxy before us has its answers from the kernel`,
      given: { backends, takeover: true },
      steps: [
        asks('A'),
        leaves('A'),
        comes('A'),
        { ...asks('PA'), age: A_WHILE, given: { backends } },
        leaves('PA'),
        { ...comes('PA'), age: A_WHILE },
      ],
    },
    {
      name: `${f.name}: in the tunnel a connection of the proxy before us is the kernel's as well when the answer is seen first`,
      given: { backends, takeover: true },
      steps: [comes('A'), leaves('A'), { ...comes('PA'), age: A_WHILE, given: { backends } }],
    },
    {
      name: `${f.name}: in the tunnel a pod that another node's asks without a service is answered by the kernel's way`,
      given: { takeover: true },
      steps: [
        comes('A'),
        { say: 'answer', through: 'from_workload', packet: tcp(pod, backend, { flags: 'A' }), ...kernels },
        leaves('A'),
        { say: 'answer', through: 'from_workload', packet: tcp(pod, backend, { flags: 'PA' }), ...kernels, age: A_WHILE, given: {} },
        leaves('PA'),
      ],
    },
    {
      name: `${f.name}: in the tunnel a connection that begins now is not the kernel's`,
      given: { takeover: true },
      steps: [{ ...comes('S'), action: 'redirect', out: tcp(backend, pod, { flags: 'S' }) }],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
