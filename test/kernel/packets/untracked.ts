// SPDX-License-Identifier: Apache-2.0
/** Rules without tracking: what they let leave is no other's, and what they cut has no flow that goes on.
 * Layer: test. */
import { concat, udp } from '../../../testkit/packets/packet.ts'
import { HOST } from '../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import { DENIED, policy } from './policy/policies.ts'
import { at, devices, families, type Family } from '../../../testkit/packets/cluster.ts'

const PORT = 46_000
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
const KERNELS = { action: 'pass', out: 'same' } as const
const SENT = { action: 'redirect' } as const

type End = Pick<Step, 'action' | 'reason' | 'out'>

function by(through: Step['through'], more: Partial<Step> = {}): (say: string, packet: Uint8Array, end?: End) => Step {
  return (say, packet, end = SENT) => ({ say, through, packet, ...end, ...more })
}

/** With a tag of VLAN 0, which XDP does not read. */
function tagged(frame: Uint8Array): Uint8Array {
  return concat([frame.subarray(0, 12), Uint8Array.from([0x81, 0, 0x60, 0]), frame.subarray(12)])
}

/** Rules that allow it do not make a source true. */
function leave(f: Family): PacketCase[] {
  const open = [policy('open', { of: HOST, ingress: [{}], egress: [{}], scope: 'doNotTrack' })]
  const tunnelEnd = udp(at(f.node, PORT), at(f.otherNode, 4789))
  return [
    {
      name: `${f.name}: untracked rules let nothing leave for another node's tunnel port`,
      given: { policies: open },
      steps: [
        by('to_host')("a tunnel of the node's kernel", tunnelEnd, KERNELS),
        by('to_host', { arrived: devices.pod.name })('from behind it', tunnelEnd, { action: 'drop', reason: 'DROP_TUNNEL_SOURCE' }),
      ],
    },
    {
      name: `${f.name}: untracked rules let no pretended pod leave`,
      given: { policies: open },
      steps: [
        by('to_host', { arrived: devices.underlay.name })('a stranger', udp(at(f.stranger, PORT), at(f.client, 80)), KERNELS),
        by('to_host', { arrived: devices.underlay.name })('a pod', udp(at(f.pod, PORT), at(f.client, 80)), SPOOFED),
        by('to_host', { arrived: devices.underlay.name })('a service', udp(at(f.bareVip, PORT), at(f.client, 80)), SPOOFED),
      ],
    },
  ]
}

/** The other direction, which these rules do not cut, keeps a flow fresh. */
function open(f: Family): PacketCase[] {
  const [asks, answers] = [udp(at(f.client, PORT), at(f.pod, 80)), udp(at(f.pod, 80), at(f.client, PORT))]
  const [toNode, fromNode] = [udp(at(f.client, PORT), at(f.node, 80)), udp(at(f.node, 80), at(f.client, PORT))]
  const [toTunnel, fromTunnel] = [udp(at(f.client, PORT), at(f.pod, 4789)), udp(at(f.pod, 4789), at(f.client, PORT))]
  const rest = policy('rest', { of: HOST, ingress: [{}], egress: [{}] })
  const cutIn = [rest, policy('cut', { of: HOST, ingress: [{ action: 'deny' }], scope: 'doNotTrack' })]
  const cutOut = [rest, policy('cut', { of: HOST, egress: [{ action: 'deny' }], scope: 'doNotTrack' })]
  return [
    {
      name: `${f.name}: new untracked rules cut an open flow's tagged frames`,
      given: { policies: [rest] },
      steps: [
        by('from_host')('asks', asks),
        by('from_workload')('answers', answers),
        { ...by('from_host')('asks, now cut', tagged(asks), DENIED), policies: cutIn },
        by('from_workload')('answers', answers),
        by('from_host')('asks, tagged', tagged(asks), DENIED),
        by('untracked')('asks, plain at XDP', asks, DENIED),
      ],
    },
    {
      name: `${f.name}: new untracked rules cut an open flow to the tunnel's port`,
      given: { policies: [rest] },
      steps: [
        by('from_host')('asks', toTunnel),
        by('from_workload')('answers', fromTunnel),
        { ...by('from_host')('asks, now cut', toTunnel, DENIED), policies: cutIn },
        by('from_workload')('answers', fromTunnel),
        by('untracked')('asks at XDP', toTunnel, KERNELS),
        by('from_host')('asks', toTunnel, DENIED),
      ],
    },
    {
      name: `${f.name}: new untracked rules cut answers that the node sends in an open flow`,
      given: { policies: [rest] },
      steps: [
        by('from_host')('asks', toNode, KERNELS),
        by('to_host')('answers', fromNode, KERNELS),
        { ...by('to_host')('answers, now cut', fromNode, DENIED), policies: cutOut },
        by('from_host')('asks', toNode, KERNELS),
        by('to_host')('answers', fromNode, DENIED),
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...leave(f), ...open(f)])
