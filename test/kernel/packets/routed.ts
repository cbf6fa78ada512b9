// SPDX-License-Identifier: Apache-2.0
/** What is the kernel's to route although we know the way: where netfilter has to see both directions. Layer: test. */
import { tcp } from '../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { A_WHILE, DECIDED, NODE_PORT, at, devices, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000

/** Goes on as it came. */
function kernels(say: string, through: Step['through'], packet: Uint8Array): Step {
  return { say, through, packet, action: 'pass', out: 'same' }
}

function forFamily(f: Family): PacketCase[] {
  const pod = at(f.routedPod, PORT)
  const served = at(f.routedPod, 8080)
  const far = at(f.client, 443)
  const client = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const vip = at(f.vip, 80)
  const remote = at(f.remotePod, 8080)
  return [
    {
      name: `${f.name}: another plugin's pod and the network, in both directions and at all hooks`,
      given: {},
      steps: [
        kernels('SYN', 'from_workload', tcp(pod, far, { flags: 'S' })),
        kernels('SYN-ACK', 'from_host', tcp(far, pod, { flags: 'SA' })),
        kernels('SYN-ACK at the pod', 'to_workload', tcp(far, pod, { flags: 'SA' })),
        kernels('ACK', 'from_workload', tcp(pod, far, { flags: 'A' })),
        kernels('data', 'from_host', tcp(far, pod, { flags: 'PA' })),
        { ...kernels('data after a while', 'from_workload', tcp(pod, far, { flags: 'PA' })), age: A_WHILE },
      ],
    },
    {
      name: `${f.name}: the network and another plugin's pod`,
      given: {},
      steps: [
        kernels('SYN', 'from_host', tcp(client, served, { flags: 'S' })),
        kernels('SYN at the pod', 'to_workload', tcp(client, served, { flags: 'S' })),
        kernels('SYN-ACK', 'from_workload', tcp(served, client, { flags: 'SA' })),
        kernels('ACK', 'from_host', tcp(client, served, { flags: 'A' })),
      ],
    },
    {
      name: `${f.name}: a node port of another plugin's pod is ours alone`,
      given: { backends: [{ addr: f.routedPod, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(client, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(client, served, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(served, client, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(front, client, { flags: 'SA', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: another plugin's pod and a service elsewhere: answers are translated at the pod`,
      given: { backends: [{ addr: f.remotePod, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(pod, vip, { flags: 'S' }),
          action: 'pass',
          out: tcp(pod, remote, { flags: 'S' }),
        },
        kernels('SYN-ACK', 'from_host', tcp(remote, pod, { flags: 'SA' })),
        {
          say: 'SYN-ACK at the pod',
          through: 'to_workload',
          packet: tcp(remote, pod, { flags: 'SA' }),
          action: 'pass',
          out: tcp(vip, pod, { flags: 'SA' }),
        },
        kernels('data', 'from_host', tcp(remote, pod, { flags: 'PA' })),
        {
          say: 'data at the pod, after a while',
          through: 'to_workload',
          packet: tcp(remote, pod, { flags: 'PA' }),
          action: 'pass',
          out: tcp(vip, pod, { flags: 'PA' }),
          age: A_WHILE,
        },
        kernels('more', 'from_host', tcp(remote, pod, { flags: 'PA' })),
      ],
    },
    {
      name: `${f.name}: another plugin's pod reaches others of this node by the shortest way`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(pod, at(f.secondPod, 80), { flags: 'S' }),
          action: 'redirect',
          out: tcp(pod, at(f.secondPod, 80), { flags: 'S', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: the node by a service to another plugin's pod: the kernel leads the packet there itself`,
      given: { backends: [{ addr: f.routedPod, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'to_host',
          packet: tcp(at(f.node, PORT), vip, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.node, PORT), served, { flags: 'S' }),
        },
        {
          ...kernels('SYN at the pod', 'to_workload', tcp(at(f.node, PORT), served, { flags: 'S' })),
          mark: DECIDED,
          arrived: devices.underlay.name,
        },
      ],
    },
    {
      name: `${f.name}: what came to a pod by the kernel alone, as from a host port, is answered by it`,
      given: {},
      steps: [
        kernels('SYN', 'to_workload', tcp(client, at(f.pod, 8080), { flags: 'S' })),
        kernels('SYN-ACK', 'from_workload', tcp(at(f.pod, 8080), client, { flags: 'SA' })),
        kernels('ACK', 'to_workload', tcp(client, at(f.pod, 8080), { flags: 'A' })),
        { ...kernels('data', 'from_workload', tcp(at(f.pod, 8080), client, { flags: 'PA' })), age: A_WHILE },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
