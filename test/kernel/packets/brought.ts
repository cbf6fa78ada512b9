// SPDX-License-Identifier: Apache-2.0
/** What the kernel brings and no flow says of whom it is: flows that began where they leave, groups, ICMP errors.
 * Layer: test. */
import { MACS, icmp, l3, udp } from '../../../testkit/packets/packet.ts'
import { HOST, UNDERLAY } from '../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import { numbers } from './icmp/errors.ts'
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

/** A device that gets rules for what comes in when others have had theirs for what leaves. */
function forwarded(f: Family): PacketCase[] {
  const [there, back] = [udp(at(f.client, PORT), at(f.stranger, 80)), udp(at(f.stranger, 80), at(f.client, PORT))]
  const out = [policy('out', { of: HOST, egress: [{}], scope: 'forward' })]
  const cut = [...out, policy('in', { of: HOST, ingress: [{ action: 'deny' }], scope: 'forward' })]
  return [
    {
      name: `${f.name}: rules for what comes in are asked of flows that began where they leave`,
      given: { policies: out },
      steps: [
        by('to_host', { arrived: devices.underlay.name })('leaves', there, KERNELS),
        by('from_host')('is answered', back),
        { ...by('from_host')('is answered by new rules', back), policies: cut },
        by('from_host')('comes in', there, DENIED),
      ],
    },
  ]
}

/** A process may choose the device by which its packets leave, without rights (SO_BINDTODEVICE). */
function otherDevice(f: Family): PacketCase[] {
  const [here, there] = [devices.underlay.name, undefined]
  const end = (device: string | undefined): Partial<Step> => (device === undefined ? {} : { device })
  const leaves = udp(at(f.node, PORT), at(f.client, 80))
  const comes = (dst: string): Uint8Array => udp(at(f.client, PORT), at(f.node, 80), { macs: { ...MACS, dst } })
  const rules = (closed: 'ingress' | 'egress') => [
    policy('all', { of: HOST, ingress: [{}], egress: [{}] }),
    policy('closed', { of: UNDERLAY, ingress: closed === 'ingress' ? [] : [{}], egress: closed === 'egress' ? [] : [{}] }),
  ]
  const both = (through: 'to_host' | 'from_host', [packet, other]: readonly [Uint8Array, Uint8Array], back: Uint8Array): Step[] => [
    by(through, end(there))('by a device that lets it pass', packet, KERNELS),
    by(through, end(here))('by one that does not', other, DENIED),
    by(through === 'to_host' ? 'from_host' : 'to_host', end(there))('answer', back, KERNELS),
    by(through, end(here))('by one that does not, again', other, DENIED),
    by(through, end(there))('by the first again', packet, KERNELS),
  ]
  return [
    {
      name: `${f.name}: what the node sends is asked about by the rules of the device by which it leaves, whatever others have let be`,
      given: { policies: rules('egress') },
      steps: both('to_host', [leaves, leaves], udp(at(f.client, 80), at(f.node, PORT))),
    },
    {
      name: `${f.name}: what comes in is asked about by the rules of the device by which it comes, whatever others have let be`,
      given: { policies: rules('ingress') },
      steps: both('from_host', [comes(MACS.dst), comes(devices.underlay.mac)], udp(at(f.node, 80), at(f.client, PORT))),
    },
  ]
}

/** Packets to multicast groups are of no flow. */
function groups(f: Family): PacketCase[] {
  const group = f.v4 ? '224.0.0.251' : 'ff02::fb'
  return [
    {
      name: `${f.name}: a process of the node is no pod to groups either`,
      given: {},
      steps: [
        by('to_host')('own', udp(at(f.node, PORT), at(group, 5353)), KERNELS),
        ...(f.v4 ? [] : [by('to_host')('a pod', udp(at(f.pod, PORT), at(group, 5353)), SPOOFED)]),
        by('to_host', { arrived: devices.underlay.name })('a pod, forwarded', udp(at(f.pod, PORT), at(group, 5353)), SPOOFED),
        by('to_workload')('a pod', udp(at(f.elsewherePod, PORT), at(group, 5353)), SPOOFED),
      ],
    },
  ]
}
/** ICMP errors that the kernel brings. */
function errors(f: Family): PacketCase[] {
  const asked = udp(at(f.pod, PORT), at(f.secondPod, 80))
  const out = udp(at(f.pod, PORT), at(f.client, 80))
  const [type, code] = numbers(f).unreachable
  const tells = (from: string, about: Uint8Array): Uint8Array => icmp(from, f.pod, { type, code, body: l3(about) })
  return [
    {
      name: `${f.name}: what the kernel brings tells of no flow within the node`,
      given: { policies: [policy('closed', { of: 'pod', ingress: [] })] },
      steps: [
        by('from_workload')('asks', asked),
        by('from_workload')('asks outside', out),
        by('to_workload')('the node tells', tells(f.node, asked), KERNELS),
        by('to_workload', { arrived: devices.underlay.name })('a router tells of the other', tells(f.stranger, out), KERNELS),
        by('to_workload', { arrived: devices.underlay.name })('a stranger tells', tells(f.stranger, asked), SPOOFED),
        by('to_workload', { arrived: devices.underlay.name })('as the other end', tells(f.secondPod, asked), SPOOFED),
      ],
    },
  ]
}
export const cases: readonly PacketCase[] = families.flatMap((f) => [...forwarded(f), ...otherDevice(f), ...groups(f), ...errors(f)])
