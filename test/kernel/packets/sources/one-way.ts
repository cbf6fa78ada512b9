// SPDX-License-Identifier: Apache-2.0
/** Sources that are true from one way only: in open flows, by errors, past rules, and through the node to another.
 * Layer: test. */
import { MACS, icmp, l3, plain, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { DENIED, policy } from '../policy/policies.ts'
import { DECIDED, NODE_PORT, TRANSLATED, VNI, at, devices, families, type Family } from '../../../../testkit/packets/cluster.ts'

const PORT = 44_000
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
const SENT = { action: 'redirect' } as const
const KERNELS = { action: 'pass', out: 'same' } as const
const OUT_OF_TUNNEL = { mark: TRANSLATED, arrived: devices.underlay.name } as const

type End = Pick<Step, 'action' | 'reason' | 'out'>

function by(through: Step['through']): (say: string, packet: Uint8Array, end?: End) => Step {
  return (say, packet, end = SENT) => ({ say, through, packet, ...end })
}

const [fromHost, fromPod, toPod] = [by('from_host'), by('from_workload'), by('to_workload')]

function forged(say: string, packet: Uint8Array): Step {
  return fromHost(`forged: ${say}`, packet, SPOOFED)
}

function inTunnel(f: Family, node: string, inner: Uint8Array): Uint8Array {
  return tunnel(node, f.node, { inner, vni: VNI, sport: 50_000 })
}

/** Flows of this node's own, and between pods of an overlay: no packet of the network is theirs, whatever source
 * it has. */
function openFlows(f: Family): PacketCase[] {
  const [pod, node, overlay, client] = [at(f.pod, PORT), at(f.node, 80), at(f.overlayPod, 80), at(f.client, PORT)]
  const web = [{ addr: f.overlayPod, port: 8080, node: f.otherNode }]
  const local = [{ addr: f.node, port: 8080 }]
  const nodePort = at(f.node, NODE_PORT)
  const noPorts = (from: string, to: string): Uint8Array => plain(from, to, { proto: 47 })
  return [
    {
      name: `${f.name}: the network says nothing in a flow of the node to its pod`,
      given: {},
      steps: [
        toPod('asks', udp(node, pod), { action: 'pass' }),
        fromPod('answers', udp(pod, node), { action: 'pass' }),
        forged('asks again', udp(node, pod)),
      ],
    },
    {
      name: `${f.name}: the network says nothing in a flow of the node to another plugin's pod`,
      given: {},
      steps: [toPod('asks', udp(node, at(f.routedPod, PORT)), { action: 'pass' }), forged('answers', udp(at(f.routedPod, PORT), node))],
    },
    {
      name: `${f.name}: the network says nothing in a flow of a pod to its node`,
      given: {},
      steps: [
        fromPod('asks', udp(pod, node), { action: 'pass' }),
        toPod('answers', udp(node, pod), { action: 'pass' }),
        forged('answers again', udp(node, pod)),
      ],
    },
    {
      name: `${f.name}: what a service has answered has come from its backend`,
      given: { backends: [{ addr: f.secondPod, port: 80 }], frontends: [at(f.bareVip, 81)] },
      steps: [
        fromPod('asks', udp(pod, at(f.bareVip, 81))),
        forged('answers as the service', udp(at(f.bareVip, 81), pod)),
        fromPod('answers', udp(at(f.secondPod, 80), pod)),
        forged('answers again as the service', udp(at(f.bareVip, 81), pod)),
      ],
    },
    {
      name: `${f.name}: an overlay pod answers out of its node's tunnel alone, and by the node that it has moved to`,
      given: {},
      steps: [
        fromPod('asks', udp(pod, overlay)),
        forged('answers without the tunnel', udp(overlay, pod)),
        forged("answers in another node's tunnel", inTunnel(f, f.thirdNode, udp(overlay, pod))),
        fromHost('answers', inTunnel(f, f.otherNode, udp(overlay, pod))),
        { ...fromHost('answers by another node', inTunnel(f, f.thirdNode, udp(overlay, pod))), overlayBy: f.thirdNode },
      ],
    },
    {
      name: `${f.name}: no other node takes an overlay pod's connection over`,
      given: {},
      steps: [
        fromHost('SYN', inTunnel(f, f.otherNode, tcp(overlay, pod, { flags: 'S' }))),
        fromPod('SYN-ACK', tcp(pod, overlay, { flags: 'SA' })),
        fromHost('ACK', inTunnel(f, f.otherNode, tcp(overlay, pod, { flags: 'A' }))),
        forged('ACK', inTunnel(f, f.thirdNode, tcp(overlay, pod, { flags: 'A' }))),
        forged('ACK without the tunnel', tcp(overlay, pod, { flags: 'A' })),
      ],
    },
    {
      name: `${f.name}: without ports as well an overlay pod sends in its node's tunnel alone`,
      given: {},
      steps: [
        fromHost('comes', inTunnel(f, f.otherNode, noPorts(f.overlayPod, f.pod))),
        forged('comes without the tunnel', noPorts(f.overlayPod, f.pod)),
        forged("comes in another node's tunnel", inTunnel(f, f.thirdNode, noPorts(f.overlayPod, f.pod))),
      ],
    },
    {
      name: `${f.name}: a node port's answer comes in the tunnel of its backend's node`,
      given: { backends: web },
      steps: [
        fromHost('asks', udp(client, nodePort)),
        forged('answers without the tunnel', udp(at(f.overlayPod, 8080), client)),
        fromHost('answers', inTunnel(f, f.otherNode, udp(at(f.overlayPod, 8080), client))),
      ],
    },
    {
      name: `${f.name}: the answer of a node port that a process of the node serves is the node's own`,
      given: { backends: local },
      steps: [fromHost('asks', udp(client, nodePort), { action: 'pass' }), forged('answers', udp(at(f.node, 8080), client))],
    },
  ]
}

/** What the network says of what it never had. */
function errors(f: Family): PacketCase[] {
  const { unreachable } = numbers(f)
  const [type, code] = unreachable
  const tells = (from: string, to: string, about: Uint8Array): Uint8Array => icmp(from, to, { type, code, body: l3(about) })
  const [pod, second, overlay] = [at(f.pod, PORT), at(f.secondPod, 80), at(f.overlayPod, 80)]
  const unknown = udp(at(f.pod, 9), at(f.client, 9))
  return [
    {
      name: `${f.name}: the network tells of no packet that it never had`,
      given: { backends: [{ addr: f.secondPod, port: 80 }], frontends: [at(f.vip, 81)] },
      steps: [
        fromPod('to a pod of the node', udp(pod, second)),
        forged('of it', tells(f.client, f.pod, udp(pod, second))),
        fromPod('in the tunnel', udp(pod, overlay)),
        forged('of it', tells(f.client, f.pod, udp(pod, overlay))),
        fromHost('out of the tunnel', inTunnel(f, f.otherNode, udp(at(f.overlayPod, PORT), second))),
        fromPod('and its answer', udp(second, at(f.overlayPod, PORT))),
        forged('of that', tells(f.client, f.secondPod, udp(second, at(f.overlayPod, PORT)))),
        fromPod('to a service', udp(at(f.pod, PORT + 1), at(f.vip, 81))),
        forged('of it', tells(f.client, f.pod, udp(at(f.pod, PORT + 1), at(f.vip, 81)))),
        forged('of it behind its translation', tells(f.client, f.pod, udp(at(f.pod, PORT + 1), second))),
      ],
    },
    {
      name: `${f.name}: an error about no flow has a source that is true as well`,
      given: {},
      steps: [
        ...[f.secondPod, f.node, f.overlayPod].map((from) => forged(from, tells(from, f.pod, unknown))),
        forged('a pod, to the node', tells(f.secondPod, f.node, udp(at(f.node, 9), at(f.client, 9)))),
        fromHost('a pod of another node, to this one', tells(f.overlayPod, f.node, udp(at(f.node, 9), overlay)), KERNELS),
      ],
    },
  ]
}

/** New flows: past rules without tracking, to the node, through it, and from a service. */
function newFlows(f: Family): PacketCase[] {
  const open = policy('open', { of: HOST, ingress: [{}], egress: [{}], scope: 'doNotTrack' })
  const kinds = (from: string, to: string): readonly [string, Uint8Array][] => [
    ['SYN', tcp(from, to, { flags: 'S' })],
    ['ACK', tcp(from, to, { flags: 'A' })],
    ['datagram', udp(from, to)],
  ]
  const of = (from: string, to: string): Step[] => kinds(from, to).map(([kind, packet]) => forged(`${kind} ${from} > ${to}`, packet))
  const here = [f.node, f.quietOwn, f.secondPod]
  return [
    {
      name: `${f.name}: rules without tracking let no sender in that pretends to be of this node`,
      given: { policies: [open] },
      steps: [...here, f.overlayPod].flatMap((from) => of(at(from, PORT), at(f.pod, 80))),
    },
    {
      name: `${f.name}: the node hears its own address and its pods' from itself`,
      given: {},
      steps: here.flatMap((from) => of(at(from, PORT), at(f.node, 80))),
    },
    {
      name: `${f.name}: a node sends nothing on into the tunnel of which it does not believe the source`,
      given: {},
      steps: [
        ...[...here, f.overlayPod].flatMap((from) => of(at(from, PORT), at(f.overlayPod, 80))),
        fromHost('a client', udp(at(f.client, PORT), at(f.overlayPod, 80)), KERNELS),
        fromHost('an overlay pod to the node itself', udp(at(f.overlayPod, PORT), at(f.node, 80)), KERNELS),
      ],
    },
    {
      name: `${f.name}: by a port of the node the kernel leads no packet with a forged overlay source, or a link-local one, to a pod`,
      given: {},
      steps: [
        ...kinds(at(f.overlayPod, PORT), at(f.pod, 80)).map(([kind, packet]) => toPod(`forged: ${kind}`, packet, SPOOFED)),
        { ...toPod('an overlay pod, out of the tunnel', udp(at(f.overlayPod, PORT), at(f.pod, 80)), KERNELS), ...OUT_OF_TUNNEL },
        toPod('a pod of another node', udp(at(f.remotePod, PORT), at(f.pod, 80)), KERNELS),
        toPod('a client', udp(at(f.client, PORT), at(f.pod, 80)), KERNELS),
        fromPod('asks an overlay pod', udp(at(f.pod, PORT), at(f.overlayPod, 80))),
        { ...toPod('is answered out of the tunnel', udp(at(f.overlayPod, 80), at(f.pod, PORT)), KERNELS), ...OUT_OF_TUNNEL },
        ...linkLocal(f),
      ],
    },
    {
      name: `${f.name}: of what came in the tunnel nothing passes unread`,
      given: {},
      steps: [
        fromHost(
          'a later fragment of an unknown datagram, for no pod here',
          inTunnel(
            f,
            f.otherNode,
            udp(at(f.client, PORT), at(f.stranger, 80), { id: 77, fragment: { offset: 16, more: false }, payload: 'x' }),
          ),
          { action: 'drop', reason: 'DROP_FRAGMENT_UNKNOWN' },
        ),
      ],
    },
    {
      name: `${f.name}: no host on the network has a service's address and port`,
      given: { backends: [{ addr: f.secondPod, port: 80 }], frontends: [at(f.stranger, 53), at(f.bareVip, 81)], external: [f.stranger] },
      steps: [
        forged('of the cluster', udp(at(f.bareVip, 81), at(f.pod, PORT))),
        forged('of the cluster, a port that it has not', udp(at(f.bareVip, 99), at(f.pod, PORT))),
        forged('of a host', udp(at(f.stranger, 53), at(f.pod, PORT))),
        {
          ...fromHost('an answer that a program has made', tcp(at(f.bareVip, 81), at(f.node, PORT), { flags: 'RA' }), KERNELS),
          mark: DECIDED,
          arrived: devices.underlay.name,
        },
        fromHost('another port of that host', udp(at(f.stranger, 54), at(f.pod, PORT))),
      ],
    },
  ]
}

/** What a router sends on has no such source; the node itself may have one. */
function linkLocal(f: Family): Step[] {
  const [pod, link, own] = [at(f.pod, 80), at(f.v4 ? '169.254.7.7' : 'fe80::7', PORT), at(f.v4 ? '169.254.20.10' : 'fe80::1', 53)]
  const led = (say: string, packet: Uint8Array): Step => ({
    ...toPod(say, packet, { action: 'drop', reason: 'DROP_MARTIAN' }),
    arrived: devices.underlay.name,
  })
  return [
    fromPod('asks such an address of the node', udp(pod, own), { action: 'pass' }),
    toPod('is answered by it', udp(own, pod), KERNELS),
    led('an address of the link', udp(link, pod)),
    led('an address of the link, SYN', tcp(link, pod, { flags: 'S' })),
  ]
}

/** ICMP that follows a decision follows it while the rules are those that made it, and the flow is there. */
function decided(f: Family): PacketCase[] {
  const n = numbers(f)
  const [type, code] = n.unreachable
  const echo = (word: number): Uint8Array => icmp(f.pod, f.secondPod, { type: n.echo, word })
  const reply = (word: number): Uint8Array => icmp(f.secondPod, f.pod, { type: n.reply, word })
  const asked = tcp(at(f.pod, PORT), at(f.secondPod, 80), { flags: 'S' })
  const tells = icmp(f.secondPod, f.pod, { type, code, body: l3(asked) })
  const pod = (say: string, packet: Uint8Array, then: Partial<Step> = {}): Step => ({
    ...fromPod(say, packet),
    ...then,
  })
  const open = ['pod', 'second'].map((of) => policy(`open ${of}`, { of, ingress: [{}], egress: [{}] }))
  const shut = [policy('shut', { of: 'second', ingress: [], egress: [] })]
  const closed = [policy('closed', { of: 'pod', ingress: [] })]
  return [
    {
      name: `${f.name}: replies without an id end with the rules that let them be`,
      given: { policies: open },
      steps: [pod('asks', echo(0)), pod('answers', reply(0)), pod('answers, now shut', reply(0), { policies: shut, ...DENIED })],
    },
    {
      name: `${f.name}: errors about what has long ended are asked about by themselves`,
      given: { policies: closed },
      steps: [pod('asks', asked), pod('tells', tells), pod('tells much later', tells, { age: 6000, ...DENIED })],
    },
    {
      name: `${f.name}: the node sees a masqueraded pod's own address, by whichever of the node's addresses`,
      given: {},
      steps: [fromPod('asks', udp(at(f.maskedPod, PORT), f.v4 ? '192.168.50.255:80' : '[fe80::1:2]:80'), KERNELS)],
    },
  ]
}

/** Rules without tracking are asked about each packet that comes by their device, whatever has come another way. */
function cameAnotherWay(f: Family): PacketCase[] {
  const [asks, answers] = [udp(at(f.client, PORT), at(f.pod, 80)), udp(at(f.pod, 80), at(f.client, PORT))]
  const given = { policies: [policy('cut', { of: HOST, ingress: [{ action: 'deny' }], scope: 'doNotTrack' })] }
  return [
    {
      name: `${f.name}: untracked rules of a device refuse packets of a flow that came in by another`,
      given,
      steps: [toPod('by another', asks, { action: 'pass' }), fromHost('by this', asks, DENIED)],
    },
    {
      name: `${f.name}: untracked rules of a device refuse answers in a flow whose other answers came by another`,
      given,
      steps: [fromPod('asks', answers), toPod('answers by another', asks, { action: 'pass' }), fromHost('by this', asks, DENIED)],
    },
  ]
}

/** Without ports, a sender in another place takes the flow over, and is judged by the rules for that place. */
function takenOver(f: Family): PacketCase {
  const packet = plain(f.pod, f.secondPod, { proto: 47 })
  return {
    name: `${f.name}: a pod that may send nothing goes on with no flow without ports that another node has begun in its name`,
    given: { policies: [policy('none', { of: 'pod', egress: [] })] },
    steps: [
      fromHost('in the tunnel', inTunnel(f, f.otherNode, packet)),
      fromPod('the pod itself', packet, DENIED),
      fromHost('in the tunnel again', inTunnel(f, f.otherNode, packet)),
      fromPod('the pod itself again', packet, DENIED),
    ],
  }
}

/** By its frame a packet is for all, by its address for the node: whose sockets hear it. */
function framesToAll(f: Family): PacketCase[] {
  return ['ff:ff:ff:ff:ff:ff', '01:00:5e:00:00:01'].map((dst) => {
    const from = (source: string): Uint8Array => udp(at(source, PORT), at(f.node, 9999), { macs: { ...MACS, dst } })
    return {
      name: `${f.name}: a frame to ${dst} from the network has no source of this node, its pods or services`,
      given: { backends: [{ addr: f.pod, port: 8080 }], frontends: [at(f.bareVip, 80)] },
      steps: [
        fromHost("a neighbour's", from(f.client), KERNELS),
        forged("a pod's", from(f.pod)),
        forged("the node's", from(f.node)),
        forged("a service's", from(f.bareVip)),
      ],
    }
  })
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [
  ...openFlows(f),
  ...errors(f),
  ...newFlows(f),
  ...decided(f),
  takenOver(f),
  ...cameAnotherWay(f),
  ...framesToAll(f),
])
