// SPDX-License-Identifier: Apache-2.0
/** The truth table of failsafe ports: what it asks, and `explain` as one that answers. Layer: test. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAddr, protocolNumber } from '#lib/base/ip.ts'
import type { Failsafes } from '#lib/model/failsafe.ts'
import type { Policy } from '#lib/model/policy.ts'
import { isFailsafe, isFailsafeAnswer } from '#lib/policy/host.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { TCP } from '#lib/policy/packet.ts'
import { explain } from '../../cli/explain/manifests/explain.ts'
import { ExplainedCluster } from '../../cli/explain/manifests/cluster.ts'
import { devices, families } from '../../testkit/packets/cluster.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import { HOST, UNDERLAY } from '../../testkit/packets/policy.ts'
import { felixConfiguration, node, pod, snapshotOf, v3 } from '../support/build.ts'
import type { Manifest } from '../support/build.ts'
import type { Outcome } from './tables.ts'

type Scope = 'normal' | 'preDNAT' | 'doNotTrack'
/** How a packet meets the node's programs: by a device of the network, or a pod's. */
const WAYS = ['in', 'out', 'from-pod', 'to-pod'] as const
type Way = (typeof WAYS)[number]

interface PortSaid {
  readonly protocol: string
  readonly port: number
  readonly net?: Readonly<Record<Family['name'], string>>
}

interface List {
  readonly inbound: readonly PortSaid[]
  readonly outbound: readonly PortSaid[]
  /** for each scope "." passes, "X" does not, "-" not asked; packets; why */
  readonly rows: readonly (readonly [want: string, packets: string, why: string])[]
}

export interface FailsafeTable {
  readonly id: string
  readonly description: string
  readonly scopes: readonly Scope[]
  readonly lists: readonly List[]
}

export const failsafeTable = JSON.parse(
  readFileSync(fileURLToPath(new URL('cases/host/failsafe-ports.json', import.meta.url)), 'utf8'),
) as FailsafeTable

export interface Sent {
  readonly way: Way
  readonly packet: Packet
  /** of TCP: any of S A F R P */
  readonly flags: string
}

export interface Question {
  readonly scope: Scope
  readonly world: ExplainedCluster
  readonly policies: readonly Policy[]
  readonly failsafes: Failsafes
  /** the last is asked about */
  readonly packets: readonly Sent[]
}

export interface FailsafeJudge {
  readonly name: string
  /** "." passes, "X" does not, or what else is wrong; undefined: that is nothing it can tell */
  answer(question: Question): string | undefined
}

export function askFailsafes(judge: FailsafeJudge, { lists, scopes }: FailsafeTable): Outcome {
  let asked = 0
  const wrong: string[] = []
  for (const f of families)
    for (const [number, list] of lists.entries())
      for (const [column, scope] of scopes.entries()) {
        const world = worldOf(f, list, scope)
        for (const [wants, text, why] of list.rows) {
          const want = wants[column]
          const got = want === '-' ? undefined : judge.answer({ scope, ...world, packets: text.split('; ').map((one) => sent(f, one)) })
          if (got === undefined) continue
          asked++
          if (got !== want) wrong.push(`${f.name}, list ${number}, ${scope}: ${text} (${why}): ${got} instead of ${want}`)
        }
      }
  return { asked, wrong }
}

const NODE = 'n1'

/** Both host endpoints deny everything, by policies of this scope alone. */
function worldOf(f: Family, { inbound, outbound }: List, scope: Scope): Pick<Question, 'world' | 'policies' | 'failsafes'> {
  const ports = (said: readonly PortSaid[]) => said.map(({ net, ...rest }) => (net === undefined ? rest : { ...rest, net: net[f.name] }))
  const snapshot = snapshotOf([
    node(NODE, { addresses: [f.node] }),
    node('n2', { addresses: [f.otherNode] }),
    pod('here', { node: NODE, ips: [f.pod] }),
    pod('there', { node: 'n2', ips: [f.remotePod] }),
    hostEndpoint(HOST, '*'),
    hostEndpoint(UNDERLAY, devices.underlay.name),
    felixConfiguration('default', {
      failsafeInboundHostPorts: ports(inbound),
      failsafeOutboundHostPorts: ports(outbound),
      defaultEndpointToHostAction: 'Accept',
    }),
    policy('closed', 'Deny', scope === 'normal' ? { applyOnForward: true } : { [scope]: true, applyOnForward: true }),
    ...(scope === 'normal' ? [] : [policy('rest', 'Allow', {})]),
  ])
  const world = new ExplainedCluster(snapshot)
  return { world, policies: [...snapshot.policies.values()], failsafes: world.view(NODE).failsafes }
}

function hostEndpoint(name: string, interfaceName: string): Manifest {
  return { ...v3('HostEndpoint', name, { node: NODE, interfaceName }), metadata: { name, labels: { name } } }
}

function policy(name: string, action: 'Allow' | 'Deny', scope: Readonly<Record<string, true>>): Manifest {
  const directions = 'preDNAT' in scope ? (['ingress'] as const) : (['ingress', 'egress'] as const)
  const rules = Object.fromEntries(directions.map((direction) => [direction, [{ action }]]))
  const types = directions.map((direction) => (direction === 'ingress' ? 'Ingress' : 'Egress'))
  return v3('GlobalNetworkPolicy', name, { selector: `name in {'${HOST}', '${UNDERLAY}'}`, types, ...rules, ...scope })
}

const ENDS = ['node', 'pod', 'remotePod', 'client', 'stranger'] as const
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const

/** "in TCP SA client:8080 > node:40000" */
function sent(f: Family, text: string): Sent {
  const words = /^(\S+) (\S+)(?: ([SAFRP]+))? (\w+):(\d+) > (\w+):(\d+)$/.exec(text)
  const [, wayText, protocolText, flags = '', from, sport, to, dport] = words ?? []
  const [way, protocol] = [WAYS.find((one) => one === wayText), PROTOCOLS.find((one) => one === protocolText)]
  const [src, dst] = [from, to].map((name) => ENDS.find((one) => one === name))
  if (way === undefined || protocol === undefined || src === undefined || dst === undefined) throw new Error(`no packet: ${text}`)
  const ends = { src: parseAddr(f[src]), dst: parseAddr(f[dst]), sport: Number(sport), dport: Number(dport) }
  return { way, packet: { ...ends, protocol: protocolNumber(protocol), icmp: undefined }, flags }
}

/** Tells of the first packets of flows; of others only whether untracked policies let them be. */
export const explainer: FailsafeJudge = {
  name: 'explain',
  answer: (question) => {
    const [first, ...more] = question.packets
    if (first === undefined || more.length > 0) return undefined
    const { packet, flags } = first
    if (packet.protocol === TCP && flags !== 'S') return question.scope === 'doNotTrack' ? spared(question, first) : undefined
    const worlds = { now: question.world, candidate: undefined }
    const { now, disagreements } = explain(worlds, packet, { entry: NODE, device: devices.underlay.name })
    return disagreements.length > 0 ? disagreements.join() : now.verdict === 'allow' ? '.' : 'X'
  },
}

/** Of a segment that passes a device of the network: is the node its end, and the port one that lets it be? */
function spared({ world, failsafes }: Question, { way, packet, flags }: Sent): string | undefined {
  if (way !== 'in' && way !== 'out') return undefined
  const [direction, own] = way === 'in' ? (['ingress', packet.dst] as const) : (['egress', packet.src] as const)
  const mayAnswer = flags.includes('A') || flags === 'R'
  const isOf = isFailsafe(failsafes, packet, direction) || (mayAnswer && isFailsafeAnswer(failsafes, packet, direction))
  return isOf && world.view(NODE).isSelf(own) ? '.' : 'X'
}
