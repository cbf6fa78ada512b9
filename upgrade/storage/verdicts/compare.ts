// SPDX-License-Identifier: Apache-2.0
/** Verdicts of two worlds of the same pods, over all pairs of classes. Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { protocolText, type Addr } from '#lib/base/ip.ts'
import { DIRECTIONS, type Direction, type NamedPort, type Policy } from '#lib/model/policy.ts'
import { hasPorts, type Packet } from '#lib/policy/packet.ts'
import { peersOf, type Peers, type PolicyWorld } from '#lib/policy/peers.ts'
import { judge, type Line } from '#lib/policy/walk-rules.ts'
import { classesOf, type EndpointClass, type Member } from './classes.ts'
import { decidingText, linesOf, remembered, rulesIn, STAGES, verdictText, type Lines, type Stage } from './lines.ts'
import { Matchers } from './matchers.ts'
import { packetsBetween, probesOf } from './probes.ts'

export interface ComparedVerdicts {
  readonly classes: number
  /** of classes, one that sends or gets and its peer, of which all verdicts were compared */
  readonly pairs: number
  /** verdicts that differ */
  readonly different: number
  /** a sentence each, of the first ones */
  readonly differences: readonly string[]
}

const MOST_SHOWN = 20
/** Of an endpoint that is not there. */
const NOTHING: Line<Policy> = { tiers: [], profiles: [], end: 'allow' }

interface Side {
  readonly world: PolicyWorld
  readonly peers: Peers
}

export function compareVerdicts(before: PolicyWorld, after: PolicyWorld): ComparedVerdicts {
  const sides = [before, after].map((world) => ({ world, peers: remembered(peersOf(world)) }))
  const [was, is] = sides
  if (was === undefined || is === undefined) return { classes: 0, pairs: 0, different: 0, differences: [] }
  const judged = ({ world, peers }: Side) => ({ world, matchers: new Matchers(world, peers) })
  const classes = classesOf(judged(was), judged(is))
  const comparison = new Comparison(was, is, classes)
  for (const one of classes) for (const direction of DIRECTIONS) comparison.compare(one, direction)
  const { pairs, different, differences } = comparison
  return { classes: classes.length, pairs, different, differences }
}

class Comparison {
  pairs = 0
  different = 0
  readonly differences: string[] = []
  readonly #was: Side
  readonly #is: Side
  readonly #classes: readonly EndpointClass[]
  readonly #named: readonly NamedPort[]
  readonly #known = new Map<Addr, boolean>()

  constructor(was: Side, is: Side, classes: readonly EndpointClass[]) {
    this.#was = was
    this.#is = is
    this.#classes = classes
    this.#named = classes.flatMap(({ first }) => first.ports)
  }

  /** Of all that one class sends or gets. */
  compare(one: EndpointClass, direction: Direction): void {
    const [was, is] = [this.#was, this.#is].map(({ world }) => linesOf(world, one.first.subject, direction))
    for (const stage of STAGES) if (was?.[stage] !== undefined || is?.[stage] !== undefined) this.#stage(one, { direction, stage, was, is })
  }

  #stage(one: EndpointClass, { direction, stage, was, is }: Asked): void {
    const [before, after] = [was?.[stage] ?? NOTHING, is?.[stage] ?? NOTHING]
    const probes = probesOf([...rulesIn(before), ...rulesIn(after)], this.#named)
    const isSameLine = deepEqual(before, after) && this.#isSame(one.first)
    for (const other of this.#classes) {
      const peer = other === one ? (other.second ?? other.first) : other.first
      this.pairs++
      // the same rules, asked of the same ends, say the same
      if (isSameLine && this.#isSame(peer)) continue
      const [from, to] = direction === 'egress' ? [one.first, peer] : [peer, one.first]
      for (const probe of probes)
        for (const packet of packetsBetween(from.addresses, to.addresses, probe)) {
          const [old, now] = [judge(before, packet, this.#was.peers), judge(after, packet, this.#is.peers)]
          const [oldVerdict, newVerdict] = [verdictText(stage, old), verdictText(stage, now)]
          if (oldVerdict === newVerdict) continue
          this.different++
          if (this.differences.length >= MOST_SHOWN) continue
          const [sender, receiver] = direction === 'egress' ? [one, other] : [other, one]
          const flow = flowText(packet, memberText(from, sender), memberText(to, receiver))
          const where = `${direction} of ${one.first.text}${stage === 'pod' ? '' : `, ${stage}`}`
          const verdicts = `${oldVerdict} by ${decidingText(old)} becomes ${newVerdict} by ${decidingText(now)}`
          this.differences.push(`${flow}, ${where}: ${verdicts}`)
        }
    }
  }

  /** Whether both worlds know the same of who has its addresses; services are of the cluster, and the same. */
  #isSame({ addresses }: Member): boolean {
    return addresses.every((addr) => {
      const known = this.#known.get(addr) ?? deepEqual(knownOf(this.#was.peers, addr), knownOf(this.#is.peers, addr))
      this.#known.set(addr, known)
      return known
    })
  }
}

function knownOf(peers: Peers, addr: Addr): readonly unknown[] {
  return [peers.labels(addr), peers.nodes(addr), peers.ports(addr, () => true)]
}

interface Asked {
  readonly direction: Direction
  readonly stage: Stage
  readonly was: Lines | undefined
  readonly is: Lines | undefined
}

/** "shop/web (3 alike)" */
function memberText({ text }: Member, { size }: EndpointClass): string {
  return size === 1 ? text : `${text} (${size} alike)`
}

/** "tcp shop/web:40001 > shop/db:5432" */
function flowText({ protocol, sport, dport, icmp }: Packet, from: string, to: string): string {
  const name = protocolText(protocol).toLowerCase()
  if (icmp !== undefined) return `${name}/${icmp.type}/${icmp.code} ${from} > ${to}`
  return hasPorts(protocol) ? `${name} ${from}:${sport} > ${to}:${dport}` : `${name} ${from} > ${to}`
}
