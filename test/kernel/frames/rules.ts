// SPDX-License-Identifier: Apache-2.0
/** Which frames must not arrive: by RFCs, the words of the docs and lib/policy's evaluator, never by the programs.
 * One-sided: of most frames it has no opinion. Layer: test. */
import type { Failsafes } from '#lib/model/failsafe.ts'
import { formatAddr, isWithin } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Policy } from '#lib/model/policy.ts'
import { ICMPV6, TCP, UDP } from '#lib/policy/packet.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { ProgramName } from '../../../testkit/packets/case.ts'
import { VNI } from '../../../testkit/packets/cluster.ts'
import { LINK, LINK_GROUPS, LOCAL, LOOPBACK, LOST, NODE, NO_SOURCE, OTHERS, OVERLAY, OWN, ROUTED, TO_ALL, UNSPECIFIED } from './places.ts'
import { innerOf, isAboutError, isEchoReply, quoteOf, readFrame } from './read.ts'
import type { IpSeen, Reading, Seen } from './read.ts'
import { PolicyOpinion } from './policies.ts'

/** dropped: or answered by the program itself */
export type Place = 'dropped' | 'pod' | 'node' | 'out'

export interface Journey {
  /** where it was sent into */
  readonly through: ProgramName
  readonly sent: Uint8Array
  readonly place: Place
  /** programs let it through */
  readonly byKernel?: true
  /** as it was when it got there */
  readonly got: Uint8Array
}

const TUNNEL_PORT = 4789
const [SYN, ACK] = [2, 16]
const SEPARATOR = ' '
/** What is remembered of what was let through, in one sequence of frames over the same policies. */
export class Rules {
  readonly #policy: PolicyOpinion
  /** flows as they arrived → their senders */
  readonly #flows = new Map<string, Set<Addr>>()
  /** datagrams whose first fragment was seen → where its headers end */
  readonly #firsts = new Map<string, { readonly ends: number; readonly flow: string }>()

  constructor(policies: readonly Policy[], failsafes: Failsafes) {
    this.#policy = new PolicyOpinion(policies, failsafes)
  }

  /** Why the frame must not have arrived there; undefined: no opinion. */
  fault(journey: Journey): string | undefined {
    const { through, place } = journey
    if (place === 'dropped') return undefined
    const outer = readFrame(journey.sent)
    const unwrapped = through === 'from_host' ? taken(outer, journey) : undefined
    const sent = unwrapped?.inner ?? outer
    const last = readFrame(journey.got)
    const got = put(last, sent) ?? last
    const fault =
      unwrapped?.fault ??
      (through === 'from_workload' ? ofSender(sent) : undefined) ??
      (sent.kind === 'ip' && got.kind === 'ip' && !sent.broken
        ? this.#ofPacket({ ...journey, tunnelled: unwrapped !== undefined }, sent, got)
        : undefined)
    if (fault === undefined && sent.kind === 'ip' && got.kind === 'ip') this.#remember(sent, got)
    return fault
  }

  /** What the kernel drops has opened its flow, and so has what is answered for its hop limit alone. */
  dropped({ byKernel, through, sent: frame, got: last }: Journey, place: Place): void {
    const [sent, got] = [readFrame(frame), readFrame(last)]
    if (sent.kind !== 'ip' || got.kind !== 'ip') return
    const within = through === 'from_host' && sent.inside.kind === 'whole' ? innerOf(sent.inside.l4) : undefined
    const inner = within === undefined ? undefined : readFrame(within.frame)
    if (inner?.kind === 'ip') this.#remember(inner, inner)
    const isOpened = byKernel === true || sent.hop < 2
    if (isOpened && this.fault({ through, sent: frame, got: last, place }) === undefined) this.#remember(sent, got)
    else if (sent.inside.kind === 'first' && sent.inside.reading !== undefined && !this.#firsts.has(sent.inside.key))
      this.#firsts.set(sent.inside.key, { ends: sent.inside.ends, flow: flowText(sent.src, sent.dst, sent.inside.reading) })
  }

  /** Is a packet of a new flow, whole and as it should be, allowed by everything? */
  allows(frame: Uint8Array): boolean {
    const seen = readFrame(frame)
    if (seen.kind !== 'ip' || seen.inside.kind !== 'whole' || seen.inside.reading === undefined || this.#policy.ofHosts) return false
    const packets = [packetOf(seen.inside.reading, seen.src, seen.dst)]
    return this.#policy.refusesPod({ leaving: packets, coming: packets }, { egress: true, ingress: true }) === undefined
  }

  #ofPacket(journey: Journey & { readonly tunnelled: boolean }, sent: IpSeen, got: IpSeen): string | undefined {
    const { through, place, tunnelled } = journey
    const [fromPod, fromHost, toPod] = [through === 'from_workload', through === 'from_host', place === 'pod']
    if (sent.mapped && (fromPod || toPod)) return 'an IPv6 packet with an IPv4 address'
    // whatever it tells
    const isWhole = toPod || sent.inside.kind !== 'later' // of which the node makes nothing without the first
    const liar =
      fromHost && !tunnelled && place !== 'out' && isWhole
        ? nameOfLiar(sent, toPod && sent.inside.kind === 'whole' && !this.#isOpen(got))
        : undefined
    if (liar !== undefined) return liar
    if (fromHost && toPod && !this.#isOpen(got) && !this.#isAnswered(sent)) {
      if (isWithin(NO_SOURCE, sent.src)) return `no packet of the network is from ${formatAddr(sent.src)}`
      const fault = tunnelled ? undefined : this.#ofSource(sent, got)
      if (fault !== undefined) return fault
    }
    if ((fromPod || tunnelled) && isForTunnel(got) && !ROUTED.includes(sent.src)) return "a pod's packet to the tunnel port of a node"
    // what the node itself sends, and what never leaves by such a device
    if (through === 'to_workload' && ([...NODE, ...LOOPBACK].includes(sent.src) || isWithin(LINK, sent.src))) return undefined
    if (through === 'to_host' && toPod) return undefined
    return this.#ofFragment(fromPod || toPod, sent) ?? this.#ofError(fromPod, sent, got) ?? this.#ofPolicy(journey, sent, got)
  }

  /** Of what does not come by the tunnel, which some pods' packets come back by. */
  #ofSource(sent: IpSeen, got: IpSeen): string | undefined {
    // any router may tell of an error
    if (isDiscovery(sent) || isAboutError(sent)) return undefined
    // of IPv4 some clouds ask for the health of node ports from such addresses
    if (!sent.v4 && isWithin(LINK, sent.src)) return 'an address of the link passes no router'
    // untracked rules decide alone
    if (this.#policy.isUntracked(asked(sent, got))) return undefined
    return LOST.includes(sent.src) ? 'there is no way back to the source' : undefined
  }

  #ofFragment(isOfPod: boolean, { inside }: IpSeen): string | undefined {
    if (!isOfPod) return undefined
    if (inside.kind === 'first' && inside.reading === undefined) return 'a first fragment that does not hold all headers'
    if (inside.kind !== 'later') return undefined
    const first = this.#firsts.get(inside.key)
    // the headers of a refused first fragment are remembered as well: those after it are judged by them
    if (first === undefined) return 'a fragment whose first part was not seen'
    return inside.offset < first.ends ? 'a fragment that writes over the headers of the first' : undefined
  }

  /** A pod tells of packets that were sent to itself, of no others. */
  #ofError(fromPod: boolean, sent: IpSeen, got: IpSeen): string | undefined {
    const quote = fromPod ? quoteOf(sent.inside, sent.v4) : undefined
    if (quote === undefined || quote.dst === sent.src || sent.src === got.dst || isWithin(TO_ALL, got.dst)) return undefined
    const flow = this.#flowOf(quote)
    return flow !== undefined && this.#flows.has(flow) ? 'an ICMP error of a pod about a flow of others' : undefined
  }

  #ofPolicy(journey: Journey & { readonly tunnelled: boolean }, sent: IpSeen, got: IpSeen): string | undefined {
    const { through, place, tunnelled } = journey
    if (sent.inside.kind === 'later' || sent.src === got.dst) return undefined
    if (readingsOf(sent, got).length === 0) return sent.inside.kind === 'first' ? this.#ofHostFragment({ through, place }) : undefined
    const before = asked(sent, sent)
    const packets = asked(sent, got)
    // what the programs put into the tunnel leaves by another device, which is no host endpoint here
    const isSent = through === 'to_host' && NODE.includes(sent.src) && got.dst === sent.dst && journey.got.length === journey.sent.length
    const isHosts = !tunnelled && ((through === 'from_host' && !LOCAL.includes(sent.src)) || isSent)
    if (isHosts && !isSpared(sent)) {
      const direction = through === 'from_host' ? 'ingress' : 'egress'
      const untracked = this.#policy.untracked(before, direction)
      if (untracked === 'deny') return 'untracked policy of the host'
      const ofHost = place === 'node' || through === 'to_host'
      if (
        untracked === 'silent' &&
        !this.#isKnown(sent, got) &&
        !this.#isOpen(got) &&
        this.#policy.refusesHost({ packets, before, direction, ofHost })
      )
        return `policy of the host, ${direction}`
    }
    if (this.#isKnown(sent, got)) return undefined
    if (through === 'from_workload' && isDiscovery(sent)) return undefined
    // an answer by the id of an open ping, for which no process waits
    if (isEchoReply(sent) && this.#isOpen(got)) return undefined
    // of the cluster's services those at its own addresses have node ports
    const leaving = through === 'from_workload' && NODE.includes(sent.dst) && got.dst !== sent.dst ? before : packets
    return this.#policy.refusesPod({ leaving, coming: packets }, { egress: through === 'from_workload', ingress: place === 'pod' })
  }

  /** The node puts the datagram together itself: its first fragment must hold the headers that rules ask about. */
  #ofHostFragment({ through, place }: Pick<Journey, 'through' | 'place'>): string | undefined {
    return through === 'from_host' && place === 'node' && this.#policy.closesHost
      ? 'a first fragment without headers, past policy of the host'
      : undefined
  }

  /** An answer, or an error about what the receiver has sent. */
  #isKnown(sent: IpSeen, got: IpSeen): boolean {
    const quote = quoteOf(sent.inside, sent.v4)
    if (quote !== undefined) {
      const flow = this.#flowOf(quote)
      const both = flow === undefined ? [] : quote.src === quote.dst ? [flow, reversed(flow)] : [flow]
      return both.some((one) => this.#flows.get(one)?.has(got.dst) === true)
    }
    const flow = this.#flowOf(sent)
    const icmp = sent.inside.kind === 'later' ? undefined : sent.inside.reading?.icmp
    const isAnswer = icmp === undefined ? !isRequest(sent) : (sent.v4 ? [0, 14, 16, 18] : [129, 140]).includes(icmp.type)
    return flow !== undefined && isAnswer && this.#flows.get(reversed(flow))?.has(got.dst) === true
  }

  /** What has come another way, of which this node's policy asks less. */
  #isOpen(got: IpSeen): boolean {
    const flow = this.#flowOf(got)
    return flow !== undefined && this.#flows.has(flow)
  }

  /** Has the receiver, or another, sent to the source? */
  #isAnswered(sent: IpSeen): boolean {
    const flow = this.#flowOf(sent)
    return this.#isKnown(sent, sent) || (flow !== undefined && this.#flows.has(reversed(flow)))
  }

  #flowOf({ src, dst, inside }: IpSeen): string | undefined {
    if (inside.kind === 'later') return this.#firsts.get(inside.key)?.flow
    return inside.reading === undefined ? undefined : flowText(src, dst, inside.reading)
  }

  #remember(sent: IpSeen, got: IpSeen): void {
    const begun = got.inside.kind === 'later' ? this.#firsts.get(got.inside.key)?.flow : undefined
    if (begun !== undefined) this.#opened(begun, sent.src)
    if (got.inside.kind === 'later' || got.inside.reading === undefined) return
    const flow = flowText(got.src, got.dst, got.inside.reading)
    // its peer may know the sender's own address, and that of the service
    const asSent =
      sent.inside.kind === 'later' || sent.inside.reading === undefined ? flow : flowText(sent.src, sent.dst, sent.inside.reading)
    if (sent.inside.kind === 'first') {
      const ends = Math.min(sent.inside.ends, this.#firsts.get(sent.inside.key)?.ends ?? Infinity)
      this.#firsts.set(sent.inside.key, { ends, flow })
      if (got.inside.kind === 'first') this.#firsts.set(got.inside.key, { ends, flow })
    }
    for (const one of [flow, asSent]) this.#opened(one, sent.src)
  }

  #opened(flow: string, by: Addr): void {
    this.#flows.set(flow, (this.#flows.get(flow) ?? new Set()).add(by))
  }
}

/** What has come out of the tunnel, and whether it may have. */
function taken(outer: Seen, { got }: Journey): { readonly inner: Seen; readonly fault?: string } | undefined {
  if (outer.kind !== 'ip' || outer.inside.kind !== 'whole' || !NODE.includes(outer.dst)) return undefined
  if (outer.inside.reading?.protocol !== UDP || outer.inside.reading.dport !== TUNNEL_PORT) return undefined
  const last = readFrame(got)
  // to the kernel's stack as it came: another's tunnel
  if (last.kind === 'ip' && last.src === outer.src && last.dst === outer.dst) return undefined
  const within = innerOf(outer.inside.l4)
  if (within === undefined) return undefined
  const inner = readFrame(within.frame)
  if (!OTHERS.includes(outer.src)) return { inner, fault: 'out of a tunnel packet that is from no node of the cluster' }
  if (!within.isWhole || within.vni !== VNI) return { inner, fault: 'out of a tunnel packet of another network' }
  return { inner }
}

/** The packet in the tunnel that the programs have put it into. */
function put(last: Seen, sent: Seen): Seen | undefined {
  if (last.kind !== 'ip' || last.inside.kind !== 'whole' || last.inside.reading?.dport !== TUNNEL_PORT) return undefined
  if (!NODE.includes(last.src) || !OTHERS.includes(last.dst) || (sent.kind === 'ip' && sent.src === last.src && sent.dst === last.dst))
    return undefined
  const within = innerOf(last.inside.l4)
  return within?.vni === VNI ? readFrame(within.frame) : undefined
}

/** A pod sends with its own addresses, and as no router. */
function ofSender(sent: Seen): string | undefined {
  if (sent.kind === 'vlan') return "a pod's frame with a VLAN tag"
  if (sent.kind === 'arp')
    return OWN.includes(sent.sender) || (sent.operation === 1 && isWithin(UNSPECIFIED, sent.sender)) ? undefined : 'ARP of a pod as another'
  if (sent.kind !== 'ip') return undefined
  const reading = sent.inside.kind === 'whole' ? sent.inside.reading : undefined
  const type = sent.v4 || reading?.protocol !== ICMPV6 ? 0 : (reading.icmp?.type ?? 0)
  const isOfLink = isWithin(LINK, sent.src) || isWithin(UNSPECIFIED, sent.src)
  if (isDiscovery(sent) && [134, 137].includes(type)) return 'a pod as a router'
  if (OWN.includes(sent.src) || (!sent.v4 && isOfLink && isDiscovery(sent))) return undefined
  return 'a source that is not its own'
}

/** Discovery has hop limit 255 and goes to the link or the node itself; listener messages have 1, go to a group and
 * come from the link. */
function isDiscovery({ v4, src, dst, hop, inside }: IpSeen): boolean {
  const type = inside.kind === 'whole' && inside.reading?.protocol === ICMPV6 ? (inside.reading.icmp?.type ?? 0) : 0
  if (v4) return false
  if (type >= 133 && type <= 137) return hop === 255 && (isWithin(LINK_GROUPS, dst) || NODE.includes(dst) || ROUTED.includes(dst))
  const isListener = [130, 131, 132, 143].includes(type)
  return isListener && hop === 1 && isWithin(TO_ALL, dst) && (isWithin(LINK, src) || isWithin(UNSPECIFIED, src))
}

/** What no policy of a host is asked about. */
function isSpared(sent: IpSeen): boolean {
  const isGroup = sent.inside.kind === 'whole' && sent.inside.reading?.protocol === 2 && isWithin(TO_ALL, sent.dst)
  const isOwn = NODE.includes(sent.src) && (isWithin(TO_ALL, sent.dst) || isDiscovery({ ...sent, dst: sent.src }))
  return isDiscovery(sent) || isGroup || isOwn
}

/** A SYN alone is no answer. */
function isRequest({ inside }: IpSeen): boolean {
  return inside.kind !== 'later' && inside.reading?.protocol === TCP && ((inside.l4[13] ?? 0) & (SYN | ACK)) === SYN
}

function isForTunnel({ dst, inside }: IpSeen): boolean {
  if (![...NODE, ...OTHERS].includes(dst) || inside.kind === 'later') return false
  return inside.reading?.protocol === UDP && inside.reading.dport === TUNNEL_PORT
}

/** The ports it arrived with, and those that it was sent from: programs may change the latter. */
function readingsOf(sent: IpSeen, got: IpSeen): readonly Reading[] {
  const [was, is] = [sent.inside, got.inside].map((inside) => (inside.kind === 'later' ? undefined : inside.reading))
  if (was === undefined || is === undefined) return []
  return [is, { ...is, sport: was.sport }]
}

function asked(sent: IpSeen, got: IpSeen): readonly Packet[] {
  return readingsOf(sent, got).map((reading) => packetOf(reading, sent.src, got.dst))
}

function packetOf(reading: Reading, src: Addr, dst: Addr): Packet {
  const isPorted = reading.icmp === undefined
  return { ...reading, src, dst, sport: isPorted ? reading.sport : 0, dport: isPorted ? reading.dport : 0 }
}

function reversed(flow: string): string {
  const [protocol, src, sport, dst, dport] = flow.split(SEPARATOR)
  return [protocol, dst, dport, src, sport].join(SEPARATOR)
}

function flowText(src: Addr, dst: Addr, { protocol, sport, dport }: Pick<Reading, 'protocol' | 'sport' | 'dport'>): string {
  return [protocol, formatAddr(src), sport, formatAddr(dst), dport].join(SEPARATOR)
}

/** Of a packet outside the tunnel: why its source is forged. A flow may have come by a device that is none of ours. */
function nameOfLiar(sent: IpSeen, isNew: boolean): string | undefined {
  if (isDiscovery(sent) || isWithin(TO_ALL, sent.dst)) return undefined
  if (NODE.includes(sent.src)) return 'packets of this node do not come from the network'
  if (LOCAL.includes(sent.src)) return 'packets of a pod of this node do not come from the network'
  return isNew && OVERLAY.includes(sent.src) ? "an overlay pod's packets come in the tunnel" : undefined
}
