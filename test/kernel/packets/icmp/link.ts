// SPDX-License-Identifier: Apache-2.0
/** ICMPv6 and IGMP that links need for themselves: no rules ask of it, as long as it is what it says. Layer: test. */
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { concat, icmp, macBytes, plain } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { HEADERS, chained, fragment } from '../headers/chain.ts'
import { DENIED, policy } from '../policy/policies.ts'
import { families } from '../../../../testkit/packets/cluster.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'

const [QUERY, REPORT, DONE, RS, RA, NS, NA, REDIRECT, REPORT2] = [130, 131, 132, 133, 134, 135, 136, 137, 143] as const
const ALL = [QUERY, REPORT, DONE, RS, RA, NS, NA, REDIRECT, REPORT2] as const
const DISCOVERY: readonly number[] = [RS, RA, NS, NA, REDIRECT]

const MAC = macBytes('02:00:00:00:aa:01')
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const

interface Sent {
  readonly type: number
  readonly from: string
  readonly to: string
  readonly ttl?: number
  /** of discovery */
  readonly target?: string
}

function message({ type, from, to, ttl = DISCOVERY.includes(type) ? 255 : 1, target = to }: Sent): Uint8Array {
  const body = type === RS ? concat([Uint8Array.of(1, 1), MAC]) : concat([addrBytes(parseAddr(target)), Uint8Array.of(1, 1), MAC])
  return icmp(from, to, { type, ttl, body })
}

/** Closed in both directions, pod and host. */
const CLOSED = [
  policy('pod', { of: 'pod', ingress: [], egress: [] }),
  policy('host', { of: HOST, ingress: [], egress: [], scope: 'normal' }),
  policy('through', { of: HOST, ingress: [], egress: [], scope: 'forward' }),
]

function said(f: Family): PacketCase[] {
  const link = 'fe80::5'
  const passes = (say: string, through: Step['through'], sent: Sent): Step => ({
    say,
    through,
    packet: message(sent),
    action: 'pass',
    out: 'same',
  })
  return [
    {
      name: 'IPv6: links of pods without any rights have neighbour discovery and multicast listeners',
      given: { policies: CLOSED },
      steps: [
        passes('asks whether its address is taken', 'from_workload', { type: NS, from: '::', to: 'ff02::1:ff00:5', target: f.pod }),
        passes('asks for the node', 'from_workload', { type: NS, from: f.pod, to: 'ff02::1:ff00:1', target: f.node }),
        passes('asks whether the node is still there', 'from_workload', { type: NS, from: f.pod, to: f.node }),
        passes('asks for routers', 'from_workload', { type: RS, from: link, to: 'ff02::2' }),
        passes('asks for routers before it has an address', 'from_workload', { type: RS, from: '::', to: 'ff02::2' }),
        passes('answers the node', 'from_workload', { type: NA, from: f.pod, to: f.node, target: f.pod }),
        passes('tells all', 'from_workload', { type: NA, from: link, to: 'ff02::1', target: link }),
        passes('joins groups', 'from_workload', { type: REPORT2, from: link, to: 'ff02::16' }),
        passes('joins groups before it has an address', 'from_workload', { type: REPORT2, from: '::', to: 'ff02::16' }),
        passes('joins a group, the old way', 'from_workload', { type: REPORT, from: link, to: 'ff05::7' }),
        passes('leaves it', 'from_workload', { type: DONE, from: link, to: 'ff02::2' }),
        passes('a pod of another plugin asks its neighbour', 'from_workload', { type: NS, from: f.routedPod, to: f.routedPod }),
        passes('the node asks', 'to_workload', { type: NS, from: 'fe80::1', to: f.pod }),
        passes('the node answers', 'to_workload', { type: NA, from: f.node, to: f.pod, target: f.node }),
      ],
    },
    {
      name: 'IPv6: the link of a host without any rights has router and neighbour discovery and multicast listeners',
      given: { policies: CLOSED },
      steps: [
        passes('neighbour asks', 'from_host', { type: NS, from: f.client, to: 'ff02::1:ff00:1', target: f.node }),
        passes('neighbour asks again', 'from_host', { type: NS, from: f.client, to: f.node }),
        passes('by its address of the link', 'from_host', { type: NS, from: link, to: 'fe80::1' }),
        passes('neighbour answers', 'from_host', { type: NA, from: f.client, to: f.node, target: f.client }),
        passes('router tells', 'from_host', { type: RA, from: link, to: 'ff02::1' }),
        passes('router knows better', 'from_host', { type: REDIRECT, from: link, to: f.node }),
        passes('querier asks', 'from_host', { type: QUERY, from: link, to: 'ff02::1' }),
        passes('the node asks', 'to_host', { type: NS, from: f.node, to: 'ff02::1:ff00:2', target: f.otherNode }),
        passes('the node answers', 'to_host', { type: NA, from: f.node, to: f.client, target: f.node }),
        passes('the node joins groups', 'to_host', { type: REPORT2, from: link, to: 'ff02::16' }),
      ],
    },
  ]
}

/** By its type alone no message is of the link. */
function pretended(f: Family): PacketCase[] {
  const ping = icmp(f.pod, f.node, { type: 128, word: 0x0101_0001, ttl: 255, body: new Uint8Array(24).fill(NS) })
  const each = (
    say: string,
    through: Step['through'],
    { from, to, ttl, types = ALL }: Omit<Sent, 'type'> & { types?: readonly number[] },
  ) =>
    types.map((type): Step => ({
      say: `type ${type} ${say}`,
      through,
      packet: message({ type, from, to, ...(ttl && { ttl }) }),
      ...DENIED,
    }))
  return [
    {
      name: 'IPv6: messages of the link that go beyond it are asked about like any, from pods',
      given: { policies: CLOSED },
      steps: [f.secondPod, f.elsewherePod, f.remotePod, f.overlayPod, f.client, f.otherNode].flatMap((to) => [
        ...each(`to ${to}`, 'from_workload', { from: f.pod, to, ttl: 255 }),
        ...each(`to ${to}, as any packet`, 'from_workload', { from: f.pod, to, ttl: 64 }),
      ]),
    },
    {
      name: 'IPv6: messages that only say they are of the link are asked about, from pods to their node and to all',
      given: { policies: CLOSED },
      steps: ['ff02::1', 'ff0e::7', f.node].flatMap((to) => each(`to ${to}`, 'from_workload', { from: f.pod, to, ttl: 64 })),
    },
    {
      name: 'IPv6: messages of the link do not come to pods from beyond it',
      given: { policies: CLOSED },
      steps: [
        ...each('from outside', 'from_host', { from: f.client, to: f.pod, ttl: 64 }),
        ...each('from outside, as from the link', 'from_host', { from: f.client, to: f.pod, ttl: 255 }),
        ...each('by the kernel', 'to_workload', { from: f.client, to: f.pod, ttl: 254 }),
      ],
    },
    {
      name: 'IPv6: messages that only say they are of the link are asked about, to the host and through it',
      given: { policies: CLOSED },
      steps: [
        ...each('to the host', 'from_host', { from: f.client, to: f.node, ttl: 64 }),
        ...each('to all', 'from_host', { from: f.client, to: 'ff02::1', ttl: 64 }),
        ...[f.remotePod, f.overlayPod, f.routedPod].flatMap((to) =>
          each(`through it to ${to}`, 'from_host', { from: f.client, to, ttl: 255 }),
        ),
        ...each('to its loopback', 'from_host', { from: f.client, to: '::1', ttl: 255 }),
      ],
    },
    {
      name: 'IPv6: messages of the link to loopback are of no link',
      given: {},
      steps: ALL.flatMap((type): Step[] => [
        { say: `type ${type}`, through: 'from_host', packet: message({ type, from: f.node, to: '::1', ttl: 255 }), ...SPOOFED },
        {
          say: `type ${type}`,
          through: 'from_host',
          packet: message({ type, from: f.client, to: '::1', ttl: 255 }),
          action: 'pass',
          out: 'same',
        },
        {
          say: `type ${type}`,
          through: 'from_workload',
          packet: message({ type, from: f.pod, to: '::1', ttl: 255 }),
          action: 'drop',
          reason: 'DROP_MARTIAN',
        },
      ]),
    },
    {
      name: 'IPv6: discovery in fragments, or in the data of a later one, is no discovery',
      given: { policies: CLOSED },
      steps: [
        {
          say: 'in a fragment',
          through: 'from_workload',
          packet: chained(message({ type: NS, from: f.pod, to: f.node }), [fragment(0, true)]),
          ...DENIED,
        },
        { say: 'a ping', through: 'from_workload', packet: chained(ping, [fragment(0, true)], { to: 16 }), ...DENIED },
        {
          say: 'a last fragment with the type in its data',
          through: 'from_workload',
          packet: chained(ping, [fragment(16)], { from: 16 }),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
      ],
    },
  ]
}

/** Discovery messages of a pod about others. */
function told(f: Family): PacketCase {
  const says = (say: string, sent: Sent, wrap = (frame: Uint8Array) => frame): Step => ({
    say,
    through: 'from_workload',
    packet: wrap(message(sent)),
    ...SPOOFED,
  })
  const all = { from: 'fe80::5', to: 'ff02::1' }
  return {
    name: 'IPv6: in discovery a pod speaks of itself only, and is no router',
    given: {},
    steps: [
      says('advertises a router', { ...all, type: RA }),
      says('advertises one behind options', { ...all, type: RA }, (frame) => chained(frame, [HEADERS.hop, HEADERS.destination])),
      says('redirects', { ...all, type: REDIRECT }),
      says('asks as another', { type: NS, from: f.elsewherePod, to: 'ff02::1:ff00:1', target: f.node }),
      says('asks for the gateway as another', { type: NS, from: f.elsewherePod, to: 'ff02::1:ff00:1', target: f.gateway }),
      says('asks as one outside', { type: NS, from: f.client, to: f.node }),
      says('asks for routers as another', { type: RS, from: f.client, to: 'ff02::2' }),
      says('answers for another', { type: NA, from: f.pod, to: f.node, target: f.elsewherePod }),
      says('answers for the node', { type: NA, from: f.pod, to: 'ff02::1', target: f.node }),
      says('answers for itself as another', { type: NA, from: f.elsewherePod, to: f.node, target: f.pod }),
      says('answers from the unspecified address', { type: NA, from: '::', to: 'ff02::1', target: f.pod }),
    ],
  }
}

/** IPv4's listeners. */
function igmp(f: Family): PacketCase {
  const report = (ttl: number) => plain(f.client, '224.0.0.22', { proto: 2, ttl })
  const first = plain(f.client, '224.0.0.22', { proto: 2, ttl: 1, df: false, fragment: { offset: 0, more: true } })
  return {
    name: 'IPv4: group messages come to a host without any rights, if no router will send them on',
    given: { policies: CLOSED },
    steps: [
      { say: 'of the link', through: 'from_host', packet: report(1), action: 'pass', out: 'same' },
      { say: 'from beyond', through: 'from_host', packet: report(64), ...DENIED },
      { say: 'of which more is to come', through: 'from_host', packet: first, ...DENIED },
    ],
  }
}

export const cases: readonly PacketCase[] = [
  ...families.filter(({ v4 }) => !v4).flatMap((f) => [...said(f), ...pretended(f), told(f)]),
  ...families.filter(({ v4 }) => v4).map(igmp),
]
