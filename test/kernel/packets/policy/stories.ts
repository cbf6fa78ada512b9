// SPDX-License-Identifier: Apache-2.0
/** Every way in which a flow and its answers pass this node, as far as rules are concerned. Layer: test. */
import { icmp, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import { sctp } from '../asks-back.ts'
import type { Given, ProgramName, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { ASKED, NAT_PORT, NODE_PORT, TRANSLATED, VNI, at, devices } from '../../../../testkit/packets/cluster.ts'

const PORT = 43_000

/** What a packet is when it comes to one hook. */
export interface Passage {
  readonly through: ProgramName
  readonly from: string
  readonly to: string
  readonly action: 'pass' | 'redirect'
  /** it comes in the tunnel from this node */
  readonly node?: string
  /** the address and port that the client meant, carried in the tunnel */
  readonly origin?: string
  /** a program has given it this mark, where it came in */
  readonly mark?: number
  /** by this device */
  readonly arrived?: string
}

export interface Story {
  readonly name: string
  readonly given: Given
  /** hooks that packets of the end that opens the flow pass, in order, and those of answers */
  readonly asks: readonly Passage[]
  readonly answers: readonly Passage[]
  /** without rules of the node it is none of ours */
  readonly isForeign?: true
}

export type Kind = 'tcp' | 'udp' | 'sctp' | 'ping'

/** Are there echoes of it, and SCTP? Services have neither, and masquerade changes an echo's id. */
export function has({ asks, answers, given }: Story, kind: Kind): boolean {
  const [ask, answer] = [asks.at(0), answers.at(-1)]
  return kind === 'tcp' || kind === 'udp' || (given.backends === undefined && ask?.from === answer?.to && ask?.to === answer?.from)
}

/** TCP: `flags`. */
export function packetOf(f: Family, kind: Kind, { passage, flags }: { readonly passage: Passage; readonly flags: string }): Uint8Array {
  const { from, to, node, origin } = passage
  const { echo, reply } = numbers(f)
  const host = (end: string) => end.slice(0, end.lastIndexOf(':')).replace(/^\[|\]$/g, '')
  const asked = { type: flags.startsWith('S') && !flags.includes('A') ? echo : reply, word: PORT << 16 }
  const port = (end: string) => Number(end.slice(end.lastIndexOf(':') + 1))
  const of: Readonly<Record<Kind, () => Uint8Array>> = {
    tcp: () => tcp(from, to, { flags }),
    udp: () => udp(from, to),
    sctp: () => sctp([host(from), port(from)], [host(to), port(to)], flags === 'S' ? 0 : 7),
    ping: () => icmp(host(from), host(to), asked),
  }
  const inner = of[kind]()
  if (node === undefined) return inner
  return tunnel(node, f.node, { inner, vni: VNI, sport: 50_000, ...(origin === undefined ? {} : { origin }) })
}

export function stepOf(f: Family, kind: Kind, of: { readonly passage: Passage; readonly flags: string; readonly say: string }): Step {
  const { action, through, mark, arrived } = of.passage
  const packet = packetOf(f, kind, of)
  return { say: of.say, through, packet, action, ...(mark === undefined ? {} : { mark }), ...(arrived === undefined ? {} : { arrived }) }
}

export function storiesOf(f: Family): readonly Story[] {
  return [...ofPods(f), ...ofServices(f), ...ofOutside(f), ...ofNode(f), ...ofKernel(f)]
}

/** One hook for each direction. */
function story(name: string, [ask, answer]: readonly [Passage, Passage], given: Given = {}): Story {
  return { name, given, asks: [ask], answers: [answer] }
}

function going(through: ProgramName, [from, to]: readonly [string, string], rest: Partial<Passage> = {}): Passage {
  return { through, from, to, action: 'redirect', ...rest }
}

function ofPods(f: Family): readonly Story[] {
  const [c, s] = [at(f.pod, PORT), at(f.secondPod, 80)]
  const own = at(f.pod, 80)
  const [direct, overlay] = [at(f.remotePod, PORT), at(f.overlayPod, PORT)]
  const node = f.otherNode
  return [
    story('pod to pod', [going('from_workload', [c, s]), going('from_workload', [s, c])]),
    story('pod to a pod elsewhere', [going('from_workload', [own, direct]), going('from_host', [direct, own])]),
    story('pod to a pod in the overlay', [going('from_workload', [own, overlay]), going('from_host', [overlay, own], { node })]),
    story('pod elsewhere to a pod', [going('from_host', [direct, own]), going('from_workload', [own, direct])]),
    story('pod in the overlay to a pod', [going('from_host', [overlay, own], { node }), going('from_workload', [own, overlay])]),
    story('pod to the world as its node', [
      going('from_workload', [at(f.maskedPod, PORT), at(f.client, 80)]),
      going('from_host', [at(f.client, 80), at(f.node, NAT_PORT)]),
    ]),
  ]
}

function ofServices(f: Family): readonly Story[] {
  const [c, vip] = [at(f.pod, PORT), at(f.vip, 80)]
  const [second, remote, own] = [at(f.secondPod, 8080), at(f.remotePod, 8080), at(f.pod, 8080)]
  const node = at(f.node, 8080)
  const backends = (addr: string): Given => ({ backends: [{ addr, port: 8080 }] })
  const itself = at(f.vip, PORT)
  return [
    story('pod to a service here', [going('from_workload', [c, vip]), going('from_workload', [second, c])], backends(f.secondPod)),
    story('pod to a service elsewhere', [going('from_workload', [c, vip]), going('from_host', [remote, c])], backends(f.remotePod)),
    story('pod to itself by a service', [going('from_workload', [c, vip]), going('from_workload', [own, itself])], backends(f.pod)),
    story(
      'pod as its node to a service outside',
      [going('from_workload', [at(f.maskedPod, PORT), vip]), going('from_host', [at(f.client, 8080), at(f.node, NAT_PORT)])],
      backends(f.client),
    ),
    story(
      "pod to another host's address, which a service has",
      [going('from_workload', [c, at(f.stranger, 53)]), going('from_workload', [second, c])],
      { ...backends(f.secondPod), frontends: [at(f.stranger, 53)], external: [f.stranger] },
    ),
    story(
      'pod to a service of its node',
      [going('from_workload', [c, vip], { action: 'pass' }), going('to_workload', [node, c], { action: 'pass' })],
      backends(f.node),
    ),
  ]
}

function ofOutside(f: Family): readonly Story[] {
  const client = at(f.client, PORT)
  const direct = at(f.directClient, PORT)
  const front = at(f.node, NODE_PORT)
  const [own, second, remote] = [at(f.pod, 8080), at(f.secondPod, PORT), at(f.remotePod, 8080)]
  const here: Given = { backends: [{ addr: f.pod, port: 8080 }] }
  const there: Given = { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] }
  const node = f.otherNode
  const origin = at(f.otherNode, NODE_PORT)
  return [
    story('outside to a pod', [going('from_host', [client, own]), going('from_workload', [own, client])]),
    story('outside to a node port, its backend here', [going('from_host', [client, front]), going('from_workload', [own, client])], here),
    story(
      'outside to a node port, its backend elsewhere',
      [going('from_host', [client, front]), going('from_host', [remote, client], { node })],
      there,
    ),
    story(
      'outside to a service, its backend elsewhere',
      [going('from_host', [client, at(f.vip, 80)]), going('from_host', [remote, client], { node })],
      there,
    ),
    { name: 'outside to a node port, answered elsewhere', given: there, asks: [going('from_host', [direct, front])], answers: [] },
    story(
      "outside to a node port of the node's own process",
      [going('from_host', [client, front], { action: 'pass' }), going('to_host', [at(f.node, 8080), client], { action: 'pass' })],
      { backends: [{ addr: f.node, port: 8080 }] },
    ),
    story(
      'outside to a node port, its backend outside',
      [going('from_host', [client, front]), going('from_host', [at(f.stranger, 8080), at(f.node, NAT_PORT)])],
      { backends: [{ addr: f.stranger, port: 8080 }] },
    ),
    story(
      "outside to a node port, its backend another plugin's pod",
      [going('from_host', [client, front]), going('from_workload', [at(f.routedPod, 8080), client])],
      { backends: [{ addr: f.routedPod, port: 8080 }] },
    ),
    story("outside to another's node port", [going('from_host', [client, own], { node }), going('from_workload', [own, client])]),
    story("outside to another's node port, answered from here", [
      going('from_host', [direct, own], { node, origin }),
      going('from_workload', [own, direct]),
    ]),
    story("pod to another's node port and back", [going('from_host', [second, own], { node }), going('from_workload', [own, second])]),
    story("pod to another's node port and to itself", [
      going('from_host', [at(f.pod, PORT), own], { node }),
      going('from_workload', [own, at(f.otherNode, PORT)]),
    ]),
    story("pod to another's node port, its backend this node", [
      going('from_host', [second, at(f.node, 8080)], { node, action: 'pass' }),
      going('to_workload', [at(f.node, 8080), second]),
    ]),
  ]
}

function ofNode(f: Family): readonly Story[] {
  const [node, server] = [at(f.node, PORT), at(f.node, 80)]
  const [client, pod] = [at(f.client, PORT), at(f.pod, 8080)]
  const pass = { action: 'pass' } as const
  return [
    story('node to a pod', [going('to_workload', [node, pod], pass), going('from_workload', [pod, node], pass)]),
    story('pod to its node', [going('from_workload', [pod, server], pass), going('to_workload', [server, pod], pass)]),
    story('outside to the node', [going('from_host', [client, server], pass), going('to_host', [server, client], pass)]),
    story('node to the world', [going('to_host', [node, client], pass), going('from_host', [client, node], pass)]),
    story('node to the overlay', [
      going('to_host', [node, at(f.overlayPod, 80)]),
      going('from_host', [at(f.overlayPod, 80), node], { node: f.otherNode, ...pass }),
    ]),
    story(
      'node to a service elsewhere',
      [going('to_host', [node, at(f.vip, 80)]), going('from_host', [at(f.remotePod, 8080), node], pass)],
      {
        backends: [{ addr: f.remotePod, port: 8080 }],
      },
    ),
    story('node to a service here', [going('to_host', [node, at(f.vip, 80)]), going('from_workload', [pod, node], pass)], {
      backends: [{ addr: f.pod, port: 8080 }],
    }),
  ]
}

/** The kernel takes the packets from hook to hook. */
function ofKernel(f: Family): readonly Story[] {
  const [pod, client, server] = [at(f.routedPod, PORT), at(f.client, PORT), at(f.routedPod, 80)]
  const far = at(f.client, 443)
  const pass = { action: 'pass' } as const
  const pods = { arrived: devices.pod.name } as const
  return [
    {
      name: 'the world to a host port of a pod',
      given: {},
      asks: [going('to_workload', [client, at(f.pod, 8080)], pass)],
      answers: [going('from_workload', [at(f.pod, 8080), client], pass)],
    },
    {
      name: "another plugin's pod to the world",
      given: {},
      asks: [going('from_workload', [pod, far], pass), going('to_host', [pod, far], { ...pass, ...pods, mark: ASKED })],
      answers: [going('from_host', [far, pod], pass), going('to_workload', [far, pod], pass)],
    },
    {
      name: "the world to another plugin's pod",
      given: {},
      asks: [going('from_host', [client, server], pass), going('to_workload', [client, server], pass)],
      answers: [going('from_workload', [server, client], pass), going('to_host', [server, client], { ...pass, ...pods, mark: ASKED })],
    },
    {
      name: "another plugin's pod to a service elsewhere",
      given: { backends: [{ addr: f.remotePod, port: 8080 }] },
      asks: [
        going('from_workload', [pod, at(f.vip, 80)], pass),
        going('to_host', [pod, at(f.remotePod, 8080)], { ...pass, ...pods, mark: TRANSLATED }),
      ],
      answers: [going('from_host', [at(f.remotePod, 8080), pod], pass), going('to_workload', [at(f.remotePod, 8080), pod], pass)],
    },
    {
      name: 'network to network',
      given: {},
      asks: [going('from_host', [client, at(f.stranger, 80)])],
      answers: [going('from_host', [at(f.stranger, 80), client])],
      isForeign: true,
    },
  ]
}
