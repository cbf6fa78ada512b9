// SPDX-License-Identifier: Apache-2.0
/** Sources that the kernel brings: whose packet is it, when no program of the network or of a pod has seen it come?
 * Layer: test. */
import { icmp, tcp, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { DENIED, netSide, policy } from '../policy/policies.ts'
import { ASKED, DECIDED, TRANSLATED, at, devices, families, type Family } from '../../../../testkit/packets/cluster.ts'

const PORT = 45_000
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
const KERNELS = { action: 'pass', out: 'same' } as const

type End = Pick<Step, 'action' | 'reason' | 'out'>

/** `arrived`: the device by which the node got it; undefined: it is the node's own. */
function leaves(through: 'to_workload' | 'to_host', arrived?: string): (say: string, packet: Uint8Array, end: End) => Step {
  return (say, packet, end) => ({ say, through, packet, ...(arrived === undefined ? {} : { arrived }), ...end })
}

const { underlay, pod: veth } = devices

/** By portmap, say, or by a device that has no programs. */
function forwarded(f: Family): PacketCase[] {
  const pod = at(f.pod, 80)
  const byUnderlay = leaves('to_workload', underlay.name)
  return [
    {
      name: `${f.name}: a packet that the kernel forwards is a local pod's only if it came by the pod's own veth`,
      given: {},
      steps: [
        leaves('to_workload', veth.name)('by its veth', udp(at(f.elsewherePod, PORT), pod), KERNELS),
        byUnderlay('by another device', udp(at(f.elsewherePod, PORT + 1), pod), SPOOFED),
      ],
    },
    {
      name: `${f.name}: a packet that the kernel forwards is an overlay pod's only if it came by the tunnel`,
      given: {},
      steps: [byUnderlay('by the network', udp(at(f.overlayPod, PORT), pod), SPOOFED)],
    },
    {
      name: `${f.name}: what the kernel masquerades is not the node's own, which reaches all its pods`,
      given: { policies: [policy('in', { of: 'pod', ingress: [] })] },
      steps: [
        leaves('to_workload')('its own', udp(at(f.node, PORT), pod), KERNELS),
        byUnderlay('from the network', udp(at(f.node, PORT + 1), pod), DENIED),
        leaves('to_workload', veth.name)('from another pod', udp(at(f.node, PORT + 2), pod), DENIED),
        // where test runs happen
        leaves('to_workload', 'lo')('from the pod itself', udp(at(f.node, PORT + 3), pod), KERNELS),
        { say: 'the pod asks the node', through: 'from_workload', packet: tcp(pod, at(f.node, PORT + 4), { flags: 'S' }), ...KERNELS },
        leaves('to_workload')('the node asks back', tcp(at(f.node, PORT + 4), pod, { flags: 'S' }), KERNELS),
        byUnderlay('the network asks back as the node', tcp(at(f.node, PORT + 4), pod, { flags: 'S' }), DENIED),
      ],
    },
    {
      name: `${f.name}: what the kernel masquerades may not go to another node's tunnel port`,
      given: {},
      steps: [
        leaves('to_host')("a tunnel of the node's kernel", udp(at(f.node, PORT), at(f.otherNode, 4789)), KERNELS),
        leaves('to_host', veth.name)('from behind it', udp(at(f.node, PORT), at(f.otherNode, 4789)), {
          action: 'drop',
          reason: 'DROP_TUNNEL_SOURCE',
        }),
      ],
    },
  ]
}

/** A process may bind any IPv6 address (IPV6_FREEBIND), without rights. */
function processes(f: Family): PacketCase[] {
  const [toPod, toNet] = [leaves('to_workload'), leaves('to_host')]
  const others = [at(f.elsewherePod, PORT), at(f.overlayPod, PORT), at(f.bareVip, 80)]
  return [
    ...others.map((from) => ({
      name: `${f.name}: a process of the node is not ${from}`,
      given: {},
      steps: [
        toPod('to a local pod', udp(from, at(f.pod, 80)), SPOOFED),
        toNet('to an overlay pod', udp(from, at(f.overlayPod, 81)), SPOOFED),
      ],
    })),
    {
      name: `${f.name}: rules of the node's own egress are asked whatever source a process says`,
      given: { policies: [policy('out', { of: HOST, egress: [] })] },
      steps: [
        toNet('its own', udp(at(f.node, PORT), at(f.client, 80)), DENIED),
        toNet("a stranger's", udp(at(f.stranger, PORT), at(f.client, 80)), DENIED),
      ],
    },
  ]
}

/** A process may give its packets any mark (SO_MARK), and send them round by loopback. */
function marks(f: Family): PacketCase[] {
  const [toNet, round] = [leaves('to_host'), leaves('to_workload', 'lo')]
  const marked = (steps: (port: number) => readonly Step[]): Step[] =>
    [DECIDED, TRANSLATED, ASKED].flatMap((mark, index) => steps(PORT + index).map((step) => ({ ...step, mark })))
  const others = f.v4 ? [] : [f.elsewherePod, f.overlayPod, f.bareVip]
  return [
    {
      name: `${f.name}: no mark that a process sets takes its packets past rules`,
      given: { policies: [policy('out', { of: HOST, egress: [] }), policy('in', { of: 'pod', ingress: [] })] },
      steps: marked((port) => [
        toNet('to the network', udp(at(f.node, port), at(f.client, 80)), DENIED),
        { ...round('round to a pod', udp(at(f.client, port), at(f.pod, 80)), DENIED), device: veth.name },
      ]),
    },
    ...others.map((from) => ({
      name: `${f.name}: nor does a mark make a process ${from}`,
      given: {},
      steps: marked((port) => [toNet('to an overlay pod', udp(at(from, port), at(f.overlayPod, 81)), SPOOFED)]),
    })),
  ]
}

function toNode(f: Family): PacketCase[] {
  const late = udp(at(f.client, PORT), at(f.node, 80), { id: 9, fragment: { offset: 64, more: false }, payload: 'hello123'.repeat(4) })
  const through = udp(at(f.client, PORT), at(f.remotePod, 80), {
    id: 9,
    fragment: { offset: 64, more: false },
    payload: 'hello123'.repeat(4),
  })
  const bits = f.v4 ? 32 : 128
  const refuses = [{ action: 'deny', source: netSide(`${f.client}/${bits}`) }, {}] as const
  return [
    {
      name: `${f.name}: a last fragment without its first passes no rules of a host, and waits for it only at the node itself`,
      given: {
        policies: [policy('host', { of: HOST, ingress: refuses }), policy('through', { of: HOST, ingress: refuses, scope: 'forward' })],
      },
      steps: [
        { say: 'to the node', through: 'from_host', packet: late, ...KERNELS },
        { say: 'through it', through: 'from_host', packet: through, action: 'drop', reason: 'DROP_FRAGMENT_UNKNOWN' },
      ],
    },
  ]
}

/** The kernel sends on what comes from the network to another plugin's pod: no message of a link comes so far. */
function discovery(f: Family): PacketCase[] {
  const asks = (from: string): Uint8Array => icmp(from, f.routedPod, { type: 135, ttl: 255, body: new Uint8Array(16) })
  return [
    {
      name: `${f.name}: discovery from the network to another plugin's pod is not from here either`,
      given: {},
      steps: [
        { say: "in the node's name", through: 'from_host', packet: asks(f.node), ...SPOOFED },
        { say: "in another pod's", through: 'from_host', packet: asks(f.elsewherePod), ...SPOOFED },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [
  ...forwarded(f),
  ...marks(f),
  ...toNode(f),
  // of IPv4 the kernel refuses a source that is not the node's
  ...(f.v4 ? [] : [...processes(f), ...discovery(f)]),
])
