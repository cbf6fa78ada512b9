// SPDX-License-Identifier: Apache-2.0
/** What is seen only where it leaves: the node's own sockets, and what the kernel has led to a pod. Each flow
 * stays apart from others there. Layer: test. */
import { tcp, tunnel, udp } from '../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import { tunnelPort } from './tunnel-port.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { A_WHILE, NAT_PORT, NODE_PORT, TRANSLATED, VNI, at, devices, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000
/** A program has translated it where it came in. */
const GUESTS = { mark: TRANSLATED, arrived: devices.underlay.name } as const

/** The node's own sockets, which no program sees before their packets leave: by a service, then to its backend
 * itself. */
function ownSocket(f: Family): PacketCase[] {
  const [own, moved] = [at(f.node, PORT), at(f.node, NAT_PORT)]
  const vip = at(f.vip, 80)
  const leaving = [
    { what: 'a pod elsewhere', backend: f.remotePod, leavesAt: 'to_host', answerAt: 'from_host' },
    { what: 'a pod of this node', backend: f.pod, leavesAt: 'to_workload', answerAt: 'from_workload' },
  ] as const
  return leaving.map(({ what, backend, leavesAt, answerAt }) => {
    const pod = at(backend, 8080)
    const directly: Step = {
      say: 'directly',
      through: leavesAt,
      packet: udp(own, pod, { payload: 'x' }),
      action: 'pass',
      out: udp(moved, pod, { payload: 'x' }),
    }
    const answered = (to: string, seen: string): Step => ({
      say: `answer to ${to}`,
      through: answerAt,
      packet: udp(pod, to, { payload: 'y' }),
      action: 'pass',
      out: udp(seen, own, { payload: 'y' }),
    })
    return {
      name: `${f.name}: ${what} from the node's own port by a service, then directly`,
      given: { backends: [{ addr: backend, port: 8080 }] },
      steps: [
        {
          say: 'by the service',
          through: 'to_host',
          packet: udp(own, vip, { payload: 'x' }),
          action: 'redirect',
          out: udp(own, pod, { payload: 'x' }),
        },
        answered(own, vip),
        directly,
        answered(moved, pod),
        answered(own, vip),
        { ...directly, say: 'directly, once more' },
        { ...directly, say: 'a mark of its own says nothing', mark: TRANSLATED },
        { ...directly, say: 'what is translated already is the first', ...GUESTS, out: 'same' },
      ],
    }
  })
}

/** The same, where pods of other nodes are to be had by the tunnel alone. */
function ownSocketInOverlay(f: Family): PacketCase {
  const [own, moved, far] = [at(f.node, PORT), at(f.node, NAT_PORT), at(f.overlayPod, 8080)]
  const sport = tunnelPort({ src: f.node, dst: f.overlayPod, sport: PORT, dport: 8080 })
  const directly: Step = {
    say: 'directly',
    through: 'to_host',
    packet: udp(own, far, { payload: 'x' }),
    action: 'redirect',
    out: tunnel(f.node, f.otherNode, { inner: udp(moved, far, { payload: 'x' }), vni: VNI, sport }),
  }
  return {
    name: `${f.name}: a pod in the overlay from the node's own port by a service, then directly`,
    given: { backends: [{ addr: f.overlayPod, port: 8080 }] },
    steps: [
      { say: 'by the service', through: 'to_host', packet: udp(own, at(f.vip, 80), { payload: 'x' }), action: 'redirect' },
      directly,
      { ...directly, say: 'directly, a while later', age: A_WHILE },
    ],
  }
}

/** By a node port to the node's own port, which is a pod's host port. */
function toHostPort(f: Family): PacketCase {
  const [c, pod, host] = [at(f.client, PORT), at(f.pod, 80), at(f.node, 8080)]
  return {
    name: `${f.name}: a node port whose backend is a host port: what the kernel leads to the pod goes on as its flow`,
    given: { backends: [{ addr: f.node, port: 8080 }] },
    steps: [
      {
        say: 'SYN',
        through: 'from_host',
        packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S' }),
        action: 'pass',
        out: tcp(c, host, { flags: 'S' }),
      },
      {
        say: 'SYN at the pod',
        through: 'to_workload',
        packet: tcp(c, pod, { flags: 'S' }),
        ...GUESTS,
        action: 'pass',
        out: 'same',
        flows: [{ proto: 6, from: c, to: pod }],
      },
      { say: 'SYN-ACK', through: 'from_workload', packet: tcp(pod, c, { flags: 'SA' }), action: 'pass', out: 'same' },
      {
        say: 'SYN-ACK that leaves',
        through: 'to_host',
        packet: tcp(host, c, { flags: 'SA' }),
        action: 'pass',
        out: tcp(at(f.node, NODE_PORT), c, { flags: 'SA' }),
      },
    ],
  }
}

/** By a node port, then by a host port, which the kernel translates: it has to see the answers. */
function hostPort(f: Family): PacketCase {
  const [c, moved, pod] = [at(f.client, PORT), at(f.client, NAT_PORT), at(f.pod, 8080)]
  return {
    name: `${f.name}: by a node port, then by a host port of the same pod from the same port`,
    given: { backends: [{ addr: f.pod, port: 8080 }] },
    steps: [
      { say: 'by the node port', through: 'from_host', packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S' }), action: 'redirect' },
      {
        say: 'by the host port',
        through: 'to_workload',
        packet: tcp(c, pod, { flags: 'S' }),
        action: 'pass',
        out: tcp(moved, pod, { flags: 'S' }),
      },
      {
        say: 'answered, by the kernel',
        through: 'from_workload',
        packet: tcp(pod, moved, { flags: 'SA' }),
        action: 'pass',
        out: tcp(pod, c, { flags: 'SA' }),
      },
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...ownSocket(f), ownSocketInOverlay(f), hostPort(f), toHostPort(f)])
