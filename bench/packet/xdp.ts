// SPDX-License-Identifier: Apache-2.0
/** What untracked policy costs a packet at XDP, by number of rules, for known and unknown senders. Layer: bench. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import type { PolicyStep, SetId } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { InternalError } from '#lib/base/errors.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { equals } from '#lib/model/selector/selector.ts'
import { median, minimum, quantile } from '../base/statistics.ts'
import { at } from '../../testkit/packets/cluster.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import type { PacketFigure } from './result.ts'
import type { Bench } from './measure.ts'
import { PORT } from './policy-world.ts'
import { synOf } from './stories.ts'

const XDP_DROP = 1
const XDP_PASS = 2
const REPEAT = 20_000
const WARM_UP = 200
const COUNTS = [1, 10, 100]

interface Subject {
  readonly id: string
  readonly note: string
  readonly set: SetId
  readonly packet: Uint8Array
  readonly action: typeof XDP_DROP | typeof XDP_PASS
  readonly programs: number[]
  readonly baselines: number[]
}

/** Rules that deny, of which the last finds the known sender; strangers pass all of them. */
export function xdpFigures(bench: Bench, f: Family): PacketFigure[] {
  const steps = new PolicyCompiler().change(updatesOf(f))
  bench.node.take(steps)
  const subjects = COUNTS.flatMap((count) => subjectsOf(f, count, setOf(steps, count)))
  for (let round = 0; round < bench.rounds; round++) for (const subject of subjects) measure(bench, subject)
  return subjects.map(figureOf)
}

function measure({ node, wrapper }: Bench, { set, packet, action, programs, baselines }: Subject): void {
  const program = node.program('untracked')
  node.setUntracked(set)
  wrapper.runXdp(program, packet, WARM_UP)
  baselines.push(wrapper.runXdp(wrapper.own('nothing_xdp'), packet, REPEAT).ns)
  const run = wrapper.runXdp(program, packet, REPEAT)
  if (run.action !== action) throw new InternalError(`untracked ended with action ${run.action} instead of ${action}`)
  programs.push(run.ns)
}

function subjectsOf(f: Family, count: number, set: SetId): readonly Subject[] {
  const family = f.v4 ? '' : '.v6'
  const from = (addr: string): Uint8Array => synOf({ from: at(addr, 20_000), to: at(f.node, PORT) })
  const rules = `${count} untracked rule${count === 1 ? '' : 's'} with a selector each`
  const [known, stranger] = senders(f)
  return [
    {
      id: `xdp.${count}${family}`,
      note: `${rules}; the last denies`,
      set,
      packet: from(known),
      action: XDP_DROP,
      programs: [],
      baselines: [],
    },
    {
      id: `xdp.${count}.stranger${family}`,
      note: `${rules}; none holds`,
      set,
      packet: from(stranger),
      action: XDP_PASS,
      programs: [],
      baselines: [],
    },
  ]
}

/** A sender that rules find, and one of which nothing is known. */
function senders(f: Family): readonly [known: string, stranger: string] {
  return f.v4 ? ['10.10.2.7', '192.168.61.9'] : ['fd00:10:1::207', 'fd00:61::9']
}

function setOf(steps: readonly PolicyStep[], count: number): SetId {
  for (const step of steps)
    if (step.kind === 'switch')
      for (const row of step.rows)
        if (row.table === 'hosts' && row.key.endpoint === endpointOf(count)) return row.value.sets.untrackedIngress
  throw new InternalError(`no set of ${count} rules`)
}

function endpointOf(count: number): string {
  return `HostEndpoint/of${count}`
}

function updatesOf(f: Family): readonly PolicyUpdate[] {
  const [known] = senders(f)
  const end = { ports: [], profiles: [], local: true }
  return [
    ...COUNTS.flatMap((count): PolicyUpdate[] => {
      const value = policyOf(count)
      const labels = new Map([['host', String(count)]])
      return [
        { kind: 'policy', key: refText(value), value },
        { kind: 'endpoint', key: endpointOf(count), value: { kind: 'host', labels, addrs: [], interfaceName: `eth${count}`, ...end } },
      ]
    }),
    ...Array.from({ length: Math.max(...COUNTS) }, (_, number): PolicyUpdate => {
      // those beside it make a row for every rule
      const labels = COUNTS.map((count): [string, string] => [`of${count}`, String(count - 1 - (number % count))])
      const addr = number === 0 ? known : f.v4 ? `10.10.3.${number}` : `fd00:10:1::3${number.toString(16).padStart(2, '0')}`
      const value = { kind: 'pod' as const, labels: new Map(labels), addrs: [parseAddr(addr)], ...end, local: false }
      return { kind: 'endpoint', key: `Pod/x${number}`, value }
    }),
  ]
}

function policyOf(count: number): Policy {
  const rule = (number: number) => ({ action: 'deny' as const, source: { ...ANYWHERE, selector: equals(`of${count}`, String(number)) } })
  return {
    kind: 'GlobalNetworkPolicy',
    namespace: '',
    name: `of${count}`,
    tier: 'default',
    order: 1,
    subject: equals('host', String(count)),
    ingress: Array.from({ length: count }, (_, number) => ruleOf(number, rule(number))),
    egress: undefined,
    staged: undefined,
    scope: 'doNotTrack',
  }
}

function figureOf({ id, note, programs, baselines }: Subject): PacketFigure {
  const differences = programs.map((ns, round) => ns - (baselines[round] ?? 0))
  const net = minimum(programs) - minimum(baselines)
  const spread = { median: median(differences), p90: quantile(differences, 0.9), baseline: minimum(baselines) }
  return { id, note, net, ...spread, hooks: [{ program: 'untracked', net }] }
}
