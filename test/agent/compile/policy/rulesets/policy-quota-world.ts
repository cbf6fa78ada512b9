// SPDX-License-Identifier: Apache-2.0
/** Namespaces whose policies want much of the tables, and what the tables have at each moment. Layer: test. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import type { Rows, QuotaTable } from '#agent/compile/policy/rulesets/policy-quota.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule, Side } from '#lib/model/policy.ts'
import { and, equals } from '#lib/model/selector/selector.ts'
import { policyUpdate } from '../../../../../testkit/policy/scale.ts'

export const NAMESPACE = 'netplane.io/namespace'
const ROOM_TABLES = ['rules', 'ports', 'pages', 'bits', 'nets'] as const satisfies readonly QuotaTable[]

export function times<T>(count: number, make: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

/** For the pods of that application of its namespace; none: for all of them. */
export function spacePolicy(
  namespace: string,
  of: { readonly name?: string; readonly app?: string; readonly ingress: readonly Rule[] },
): Policy {
  const own = equals(NAMESPACE, namespace)
  const { name = of.app ?? 'all' } = of
  const subject = of.app === undefined ? own : and(own, equals('app', of.app))
  const rest = { tier: 'default', order: 1000, egress: undefined, staged: undefined, scope: 'normal' } as const
  return { kind: 'KubernetesNetworkPolicy', namespace, name, subject, ingress: of.ingress, ...rest }
}

export function spacePod(namespace: string, of: { readonly app: string; readonly ip: string; readonly local?: boolean }): PolicyUpdate {
  const labels = new Map([
    [NAMESPACE, namespace],
    ['app', of.app],
  ])
  const { local = true } = of
  const value = { kind: 'pod' as const, labels, addrs: [parseAddr(of.ip)], ports: [], profiles: [`kns.${namespace}`], local }
  return { kind: 'endpoint', key: `Pod/${namespace}/${of.ip}`, value }
}

export function fromNets(nets: readonly string[]): Side {
  return { ...ANYWHERE, nets: nets.map(parseCidr) }
}

/** A rule for each prefix. */
export function fromEach(nets: readonly string[]): readonly Rule[] {
  return nets.map((net, at) => ruleOf(at, { source: fromNets([net]) }))
}

export function gone(policy: Policy): PolicyUpdate {
  return { ...policyUpdate(policy), value: undefined }
}

/** Takes the steps; tables that were too full at some time meanwhile, and by how much. */
export function fullest(tables: PolicyTables, steps: readonly PolicyStep[], sizes: Rows): readonly string[] {
  const most = new Map<QuotaTable, number>()
  for (const step of steps) {
    tables.take(step)
    const counts = Map.groupBy(tables.rows.values(), ({ table }) => table)
    for (const table of ROOM_TABLES) most.set(table, Math.max(most.get(table) ?? 0, counts.get(table)?.length ?? 0))
  }
  return ROOM_TABLES.flatMap((table) => {
    const over = (most.get(table) ?? 0) - sizes[table]
    return over > 0 ? [`${table} by ${over}`] : []
  })
}

/** A node with tables of these sizes. */
export class RoomNode {
  readonly tables = new PolicyTables()
  readonly compiler: PolicyCompiler
  readonly sizes: Rows

  constructor(sizes: Rows) {
    this.sizes = sizes
    this.compiler = new PolicyCompiler(undefined, sizes)
  }

  /** Tables that were too full at some time meanwhile, and by how much. */
  take(updates: Iterable<PolicyUpdate>): readonly string[] {
    return fullest(this.tables, this.compiler.change(updates), this.sizes)
  }

  /** "namespace: table" */
  get closed(): readonly string[] {
    return this.compiler.noRoom.map(({ namespace, table }) => `${namespace}: ${table}`)
  }

  /** What becomes of a connection. */
  ask(src: string, dst: string, dport = 80): string {
    const packet = { src: parseAddr(src), dst: parseAddr(dst), protocol: 6, sport: 40_000, dport, icmp: undefined }
    const { action, rule } = judgeByTables(this.tables, packet, { direction: 'ingress' })
    return rule === undefined ? action : `${action} by ${this.compiler.ruleName(rule) ?? '?'}`
  }
}
