// SPDX-License-Identifier: Apache-2.0
/** IPv6 extension headers wherever they may stand: rules ask by the ports behind them. Layer: test. */
import type { Policy } from '#lib/model/policy.ts'
import { icmp, l3, tcp, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import type { Header } from './chain.ts'
import { HEADERS, chained, fragment } from './chain.ts'
import { cut } from './cut.ts'
import { DENIED, policy, toPort } from '../policy/policies.ts'
import { NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'

const PORT = 41_000
const [OPEN, SHUT] = [80, 81]
const { hop, routing, destination, long, ah, mobility, hip, shim6 } = HEADERS

/** Where whatever is put in front of the ports may stand. */
const CHAINS: Readonly<Record<string, readonly Header[]>> = {
  'destination options': [destination],
  'an atomic fragment': [fragment()],
  'destination options behind an atomic fragment': [fragment(), destination],
  'destination options behind a first fragment': [fragment(0, true), destination],
  'long options on both sides of a first fragment': [long, fragment(0, true), long],
  'an authentication header': [ah],
  'an authentication header in a fragment': [fragment(), ah, destination],
  'mobility, HIP and shim6': [mobility, hip, shim6],
  'all that there may be, in the order they come in': [hop, destination, routing, fragment(), ah, destination],
  'as many as are followed': [destination, destination, destination, destination, destination, destination, destination, destination],
}

/** Each end of the node that can have rules, and what is let through to the open port. */
function ends(f: Family): readonly { readonly whose: string; readonly policies: readonly Policy[]; readonly ask: Ask }[] {
  const rules = [{ action: 'deny', ...toPort(SHUT) }, {}] as const
  const syn = (from: string, to: string) => tcp(at(from, PORT), to, { flags: 'S' })
  const datagram = (from: string, to: string) => udp(at(from, PORT), to, { payload: 'hello' })
  const pods: Ask = (say, port, wrap) => {
    const [to, action] = [at(f.pod, port), port === OPEN ? 'redirect' : 'drop'] as const
    return [
      judged({ say, through: 'from_workload', packet: wrap(syn(f.secondPod, to)), action }),
      judged({ say, through: 'from_host', packet: wrap(datagram(f.client, to)), action }),
    ]
  }
  const node: Ask = (say, port, wrap) => {
    const [to, action] = [at(f.node, port), port === OPEN ? 'pass' : 'drop'] as const
    return [syn, datagram].map((make) => judged({ say, through: 'from_host', packet: wrap(make(f.client, to)), action }))
  }
  const host = (scope: Policy['scope']) => [policy('in', { of: HOST, ingress: rules, scope })]
  return [
    { whose: "a pod's", policies: [policy('in', { of: 'pod', ingress: rules })], ask: pods },
    { whose: "a host endpoint's", policies: host('normal'), ask: node },
    { whose: "a host endpoint's preDNAT", policies: host('preDNAT'), ask: node },
    { whose: "a host endpoint's doNotTrack", policies: host('doNotTrack'), ask: node },
  ]
}

type Ask = (say: string, port: number, wrap: (frame: Uint8Array) => Uint8Array) => readonly Step[]

/** The step, with the reason where it is a drop. */
function judged(step: Step): Step {
  return step.action === 'drop' ? { ...step, ...DENIED } : step
}

function hidden(f: Family): PacketCase[] {
  return ends(f).map(({ whose, policies, ask }) => ({
    name: `IPv6: ${whose} rules by port hold behind every extension header`,
    given: { policies },
    steps: Object.entries(CHAINS).flatMap(([say, headers]) =>
      [OPEN, SHUT].flatMap((port) => ask(`${say}, port ${port}`, port, (frame) => chained(frame, headers))),
    ),
  }))
}

/** What cannot be read. */
function unread(f: Family): PacketCase[] {
  const frame = tcp(at(f.client, PORT), at(f.pod, OPEN), { flags: 'S' })
  const forHost = tcp(at(f.client, PORT), at(f.node, OPEN), { flags: 'S' })
  const tooMany = Array.from({ length: 9 }, () => destination)
  const drops = (say: string, packet: Uint8Array, reason: string): Step => ({ say, through: 'from_host', packet, action: 'drop', reason })
  return [
    {
      name: 'IPv6: extension headers that cannot be followed to their end are dropped where rules ask',
      given: { policies: [policy('in', { of: HOST, ingress: [{}] })] },
      steps: [
        drops('too many to a pod', chained(frame, tooMany), 'DROP_EXTENSION_HEADERS'),
        drops('too many to the host', chained(forHost, tooMany), 'DROP_EXTENSION_HEADERS'),
        drops('two fragment headers', chained(frame, [fragment(), fragment(0, true)]), 'DROP_MALFORMED'),
        drops('longer than the packet', chained(frame, [{ ...long, bytes: Uint8Array.of(0, 40, 0, 0, 0, 0, 0, 0) }]), 'DROP_SHORT'),
        drops('cut within a header', chained(frame, [destination], { to: 0 }).subarray(0, 58), 'DROP_SHORT'),
        drops('ports not in the first fragment', chained(frame, [fragment(0, true), long], { to: 0 }), 'DROP_SHORT'),
        drops('ports in what pads the first fragment', padded(chained(frame, [fragment(0, true), destination], { to: 8 })), 'DROP_SHORT'),
      ],
    },
    {
      name: "IPv6: extension headers of which no rules ask are the kernel's",
      given: {},
      steps: [{ say: 'too many to the host', through: 'from_host', packet: chained(forHost, tooMany), action: 'pass', out: 'same' }],
    },
    {
      name: 'IPv6: extension headers of which no rules ask hide no source that is not true',
      given: {},
      steps: [f.pod, f.node, f.overlayPod].map((from) => {
        const packet = chained(tcp(at(from, PORT), at(f.node, OPEN), { flags: 'S' }), tooMany)
        return drops(`too many to the host from ${from}`, packet, 'DROP_EXTENSION_HEADERS')
      }),
    },
    {
      name: 'IPv6: a mobility header that nothing follows is a protocol of its own',
      given: { policies: [policy('in', { of: 'pod', ingress: [{ protocols: [135] }] })] },
      steps: [
        { say: 'alone', through: 'from_host', packet: chained(frame, [mobility], { to: 0, last: 59 }), action: 'redirect' },
        { say: 'before TCP', through: 'from_host', packet: chained(frame, [mobility]), ...DENIED },
      ],
    },
  ]
}

/** The packet ends, its frame does not. */
function padded(frame: Uint8Array): Uint8Array {
  const out = new Uint8Array(frame.length + 32)
  out.set(frame)
  return out
}

/** Fragments of a datagram that has headers behind the Fragment header as well. */
function parts(f: Family): PacketCase[] {
  const payload = new Uint8Array(64).map((_, i) => i)
  const whole = (to: string, ttl = 64) => udp(at(f.client, PORT), to, { payload, ttl })
  // 8 bytes of options, then 72 of the datagram
  const first = (to: string, ttl = 64) => chained(whole(to, ttl), [fragment(0, true), destination], { to: 24 })
  const last = (to: string, { ttl = 64, says = 60, offset = 32 } = {}) =>
    chained(whole(to, ttl), [fragment(offset, false)], { from: offset - 8, last: says })
  const goes = (say: string, packet: Uint8Array, out?: Uint8Array): Step => ({
    say,
    through: 'from_host',
    packet,
    action: 'redirect',
    ...(out && { out }),
  })
  const refused = (say: string, packet: Uint8Array, reason: string): Step => ({ say, through: 'from_host', packet, action: 'drop', reason })
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  return [
    {
      name: 'IPv6: fragments of a datagram with headers in its first are translated like any',
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        goes('first', first(front), first(back, 63)),
        goes('last', last(front), last(back, { ttl: 63 })),
        goes('last, which says another protocol', last(front, { says: 6 }), last(back, { ttl: 63, says: 6 })),
      ],
    },
    {
      name: 'IPv6: what a later fragment says of its protocol is not what rules ask of',
      given: { policies: [policy('in', { of: 'pod', ingress: [{ ...toPort(OPEN), protocols: [17] }] })] },
      steps: [
        goes('first', first(at(f.pod, OPEN))),
        goes('last, which says ICMP', last(at(f.pod, OPEN), { says: 58 })),
        { ...goes('first to another port', first(at(f.pod, SHUT))), ...DENIED },
        { ...goes('its last', last(at(f.pod, SHUT), { says: 50 })), ...DENIED },
      ],
    },
    {
      name: 'IPv6: no fragment writes over headers of the first',
      given: {},
      steps: [
        goes('first', first(at(f.pod, OPEN))),
        refused('over the ports', last(at(f.pod, OPEN), { offset: 8 }), 'DROP_MALFORMED'),
        goes('behind them', last(at(f.pod, OPEN), { offset: 16 })),
      ],
    },
    {
      name: 'IPv6: a whole packet that says it is a fragment tells nothing of fragments',
      given: {},
      steps: [goes('atomic', chained(whole(at(f.pod, OPEN)), [fragment()])), refused('last', last(at(f.pod, OPEN)), 'COUNT_FRAGMENT_HELD')],
    },
  ]
}

/** Errors quote what was sent, headers and all. */
function quoted(f: Family): PacketCase[] {
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  const client = at(f.client, PORT)
  const sent = udp(client, back, { payload: 'hello', ttl: 63 })
  return [
    {
      name: "IPv6: an error about a packet with extension headers finds the packet's flow",
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(client, front, { payload: 'hello' }), action: 'redirect', out: sent },
        ...[[destination], [fragment(0, true), destination], [hop, ah]].map((headers): Step => {
          const body = (frame: Uint8Array) => l3(chained(frame, headers))
          const meant = udp(client, front, { payload: 'hello', ttl: 63 })
          meant.set(sent.subarray(60, 62), 60) // its checksum is not put back
          return {
            say: `about ${headers.map(({ type }) => type).join(', ')}`,
            through: 'from_workload',
            packet: icmp(f.pod, f.client, { type: 1, code: 4, body: body(sent) }),
            action: 'redirect',
            out: icmp(f.node, f.client, { type: 1, code: 4, ttl: 63, body: body(meant) }),
          }
        }),
      ],
    },
  ]
}

/** RFC 1858, 3128: what the first fragment was asked by must not be written over. */
function tiny(f: Family): PacketCase[] {
  const from = at(f.client, PORT)
  const to = at(f.pod, OPEN)
  const options = { id: 78, payload: new Uint8Array(40), flags: 'S' }
  const first = (bytes: number) => cut(f, tcp(from, to, { ...options, fragment: { offset: 0, more: true } }), bytes)
  const later = (offset: number, more = true) => tcp(from, to, { ...options, fragment: { offset, more } })
  const refused = (say: string, packet: Uint8Array, reason: string): Step => ({ say, through: 'from_host', packet, action: 'drop', reason })
  const short = first(16)
  return [
    {
      name: `${f.name}: fragments that would write over TCP's header are dropped`,
      given: {},
      steps: [
        refused('before a first', later(8), 'DROP_MALFORMED'),
        refused('a first that ends in it', short, 'DROP_SHORT'),
        refused('a first that ends in it, in a longer frame', padded(short), 'DROP_SHORT'),
        { say: 'first', through: 'from_host', packet: first(24), action: 'redirect' },
        refused('the second 8 bytes', later(8), 'DROP_MALFORMED'),
        refused('the third 8 bytes', later(16), 'DROP_MALFORMED'),
        { say: 'what follows', through: 'from_host', packet: later(24), action: 'redirect' },
      ],
    },
  ]
}

/** What nothing follows is a protocol of its own, and its header a header. */
function behind(f: Family): PacketCase {
  const packet = chained(udp(at(f.client, PORT), at(f.pod, OPEN)), [fragment(0, true), mobility], { to: 0, last: 59 })
  const cutOff = packet.slice()
  cutOff[19] = 8
  return {
    name: `${f.name}: a first fragment whose last header is in the padding does not hold it`,
    given: {},
    steps: [
      { say: 'in the padding', through: 'from_host', packet: cutOff, action: 'drop', reason: 'DROP_SHORT' },
      { say: 'in the packet', through: 'from_host', packet, action: 'redirect' },
    ],
  }
}

/** Its ports are behind its options, in the first fragment as well. */
const options: PacketCase = {
  name: 'IPv4: rules by port hold behind options, in whole packets and first fragments',
  given: { policies: [policy('in', { of: 'pod', ingress: [{ action: 'deny', ...toPort(SHUT) }, {}] })] },
  steps: families
    .filter(({ v4 }) => v4)
    .flatMap((f) =>
      [undefined, { offset: 0, more: true }].flatMap((part) =>
        [OPEN, SHUT].map((port): Step => {
          const envelope = { options: Uint8Array.of(1, 1, 1, 0), ...(part && { fragment: part }) }
          const packet = udp(at(f.client, PORT), at(f.pod, port), { payload: 'hello', ...envelope })
          const say = `port ${port}${part ? ' in a first fragment' : ''}`
          return judged({ say, through: 'from_host', packet, action: port === OPEN ? 'redirect' : 'drop' })
        }),
      ),
    ),
}

export const cases: readonly PacketCase[] = [
  ...families.filter(({ v4 }) => !v4).flatMap((f) => [...hidden(f), ...unread(f), ...parts(f), ...quoted(f), behind(f)]),
  ...families.flatMap(tiny),
  options,
]
