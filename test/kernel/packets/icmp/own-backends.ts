// SPDX-License-Identifier: Apache-2.0
/** ICMP errors about flows that other nodes have sent to backends here: what they quote is the service's address.
 * Layer: test. */
import { FRONTEND_MAGLEV, FRONTEND_OUTSIDE_LOCAL } from '#lib/base/bpf-constants.ts'
import { icmp, l3, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { BackendGiven, Given, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from './errors.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 46_500

type Kind = 'tcp' | 'udp'

interface Told {
  /** the backend; undefined: the error ends here */
  readonly reaches?: string
  readonly kind?: Kind
  readonly to?: string
}

/** The story of one family. */
class Story {
  readonly #f: Family
  readonly client: string

  constructor(f: Family) {
    this.#f = f
    this.client = at(f.client, PORT)
  }

  /** What another node sends on in the tunnel to a backend here. */
  opens(to: string, { kind = 'udp', from = this.client, origin }: { kind?: Kind; from?: string; origin?: string } = {}): Step {
    const inner = kind === 'udp' ? udp(from, to, { ttl: 63 }) : tcp(from, to, { flags: 'S', mss: 1400, ttl: 63 })
    const sport = tunnelPort({ src: this.#f.client, dst: this.#f.pod, sport: 0, dport: 0 })
    const packet = tunnel(this.#f.otherNode, this.#f.node, { inner, vni: VNI, sport, ...(origin === undefined ? {} : { origin }) })
    return { say: `${kind} by another node to ${to}`, through: 'from_host', packet, action: 'redirect' }
  }

  /** What a router says of the answer from `front`, with the least it may quote. */
  told(say: string, front: string, { reaches, kind = 'udp', to = this.client }: Told = {}): Step {
    const packet = this.#error(front, { kind, to, ttl: 64 })
    if (reaches === undefined) return { say, through: 'from_host', packet, action: 'drop', reason: 'DROP_STRAY_SERVICE' }
    return { say, through: 'from_host', packet, action: 'redirect', out: this.#error(reaches, { kind, to, ttl: 63, asked: front }) }
  }

  #error(from: string, { kind, to, ttl, asked = from }: { kind: Kind; to: string; ttl: number; asked?: string }): Uint8Array {
    const [type, code] = numbers(this.#f).tooBig
    const answer = (end: string): Uint8Array => l3(kind === 'udp' ? udp(end, to, { payload: 'world', ttl: 60 }) : tcp(end, to, { ttl: 60 }))
    const l4 = this.#f.v4 ? 20 : 40
    const quote = answer(from).slice(0, l4 + 8)
    // of UDP the quoted checksum stays what it was
    quote.set(answer(asked).subarray(l4 + 6, l4 + 8), l4 + 6)
    const receiver = from.slice(0, from.lastIndexOf(':')).replace(/[[\]]/g, '')
    return icmp(this.#f.stranger, receiver, { type, code, word: 1400, ttl, body: quote })
  }
}

function ownBackends(f: Family): PacketCase[] {
  const story = new Story(f)
  const [front, back] = [at(f.bareVip, 80), at(f.pod, 8080)]
  const far: BackendGiven = { addr: f.remotePod, port: 8080, node: f.otherNode }
  const near: BackendGiven = { addr: f.pod, port: 8080 }
  const leaving: BackendGiven = { addr: f.secondPod, port: 9090 }
  const given: Given = { backends: [far, near], frontends: [front] }
  const many = Array.from({ length: 3 }, (_, index): BackendGiven => ({ addr: f.maskedPod, port: 9000 + index }))
  const addresses: readonly (readonly [string, string, Given])[] = [
    ['load balancer', at(f.lost, 80), { ...given, frontends: [at(f.lost, 80)], external: [f.lost] }],
    ['node port of an address that nodes share', at(f.node, NODE_PORT), given],
    ['node port of a prefix that nodes share', at(f.prefixOwn, NODE_PORT), given],
    ['affinity', front, { ...given, affinity: 60 }],
    ["the clients' own list is of another zone", front, { ...given, backends: [far], alive: [near] }],
    ["Maglev's table says another by now", front, { ...given, maglev: [0], flags: FRONTEND_MAGLEV }],
    ['Maglev', front, { ...given, maglev: [1], flags: FRONTEND_MAGLEV }],
  ]
  return [
    {
      name: `${f.name}: an error about a service's flow reaches the backend here that has it, chosen by chance at another node`,
      given: { ...given, alive: [...many, leaving] },
      steps: [
        story.told('before there is such a flow', front),
        story.opens(back),
        story.told('udp', front, { reaches: back }),
        story.told('tcp has none', front, { kind: 'tcp' }),
        story.opens(back, { kind: 'tcp' }),
        story.told('tcp', front, { reaches: back, kind: 'tcp' }),
        story.told("another client's", front, { to: at(f.client, PORT + 1) }),
        story.opens(at(f.secondPod, 9090), { from: at(f.client, PORT + 1) }),
        story.told('to one that gets no new flows', front, { reaches: at(f.secondPod, 9090), to: at(f.client, PORT + 1) }),
        { ...story.told('tcp, when its entry has expired', front, { kind: 'tcp' }), age: 6_000 },
      ],
    },
    ...addresses.map(([name, asked, its]): PacketCase => ({
      name: `${f.name}: an error about a service's flow of another node reaches the backend here: ${name}`,
      given: its,
      steps: [story.opens(back), story.told('a router tells', asked, { reaches: back })],
    })),
    {
      name: `${f.name}: an error about a flow that this node answers itself (DSR) reaches the backend`,
      given,
      steps: [story.opens(back, { origin: front }), story.told('a router tells', front, { reaches: back })],
    },
    {
      name: `${f.name}: an error about a pod's flow to a service of policy Local, which sends pods to all backends`,
      given: { ...given, outside: [], flags: FRONTEND_OUTSIDE_LOCAL },
      steps: [
        story.opens(back),
        story.told('a client outside is sent to none here', front),
        story.opens(back, { from: at(f.remotePod, PORT) }),
        story.told('of a pod', front, { reaches: back, to: at(f.remotePod, PORT) }),
      ],
    },
    {
      name: `${f.name}: an error about a flow that came to the pod directly is no service's`,
      given,
      steps: [
        { say: 'a client asks the pod', through: 'from_host', packet: udp(story.client, back), action: 'redirect' },
        story.told('a router tells', front),
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(ownBackends)
