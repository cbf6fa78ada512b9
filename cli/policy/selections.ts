// SPDX-License-Identifier: Apache-2.0
/** What policies select. Layer: cli (pure). */
import { table } from '#lib/base/table.ts'
import { hostEndpointLabels, podLabels } from '#lib/model/effective-labels.ts'
import { hasOwnAddresses } from '#lib/model/pod.ts'
import type { Policy } from '#lib/model/policy.ts'
import { tiersInOrder } from '#lib/model/policy-order.ts'
import { isPolicyKind } from '#lib/model/kinds.ts'
import { nameKey, refText } from '#lib/model/ref.ts'
import type { KubeObject, Snapshot } from '#lib/model/snapshot.ts'
import { formatSelector } from '#lib/model/selector/text.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { ExplainedCluster } from '../explain/manifests/cluster.ts'

export interface SelectionRecord {
  /** "NetworkPolicy/shop/db" */
  readonly policy: string
  readonly tier: string
  /** false: no object defines it, and its policies are closed in the default one; null: not known without
   * --resources */
  readonly tierExists: boolean | null
  /** null: last */
  readonly order: number | null
  /** numbers of rules; null: it is not about this direction */
  readonly ingress: number | null
  readonly egress: number | null
  readonly scope: Policy['scope']
  readonly staged: NonNullable<Policy['staged']> | null
  /** it cannot be read, and has no good version in force: what it selects is closed */
  readonly closed: boolean
  readonly selector: string
  /** "shop/db-0", sorted */
  readonly pods: readonly string[]
  readonly hostEndpoints: readonly string[]
}

interface Cluster {
  readonly world: ExplainedCluster
  /** or the candidates alone */
  readonly isWhole: boolean
}

export function selections(objects: readonly KubeObject[], { world: { snapshot }, isWhole }: Cluster): readonly SelectionRecord[] {
  const tiers = new Set(tiersInOrder(snapshot.tiers).map(({ name }) => name))
  return objects.filter(isPolicy).map((policy) => ({
    policy: refText(policy),
    tier: policy.tier,
    tierExists: isWhole ? tiers.has(policy.tier) : null,
    order: Number.isFinite(policy.order) ? policy.order : null,
    ingress: rulesIn(policy.ingress),
    egress: rulesIn(policy.egress),
    scope: policy.scope,
    staged: policy.staged ?? null,
    closed: policy.closed === true,
    selector: formatSelector(policy.subject),
    ...selectedBy(policy, snapshot),
  }))
}

function isPolicy(object: KubeObject): object is Policy {
  return isPolicyKind(object.kind)
}

/** What the author wrote as one rule may be several. */
function rulesIn(rules: Policy['ingress']): number | null {
  return rules === undefined ? null : new Set(rules.map(({ at }) => at)).size
}

/** Pods are under policies of all flows alone, host endpoints under every one. */
function selectedBy(policy: Policy, snapshot: Snapshot): Pick<SelectionRecord, 'pods' | 'hostEndpoints'> {
  const isForPods = policy.scope === 'normal' || policy.scope === 'forward'
  const pods = [...snapshot.pods.values()].filter(
    (pod) => isForPods && hasOwnAddresses(pod) && selects(policy.subject, podLabels(pod, snapshot)),
  )
  const hosts = [...snapshot.hostEndpoints.values()].filter((one) => selects(policy.subject, hostEndpointLabels(one, snapshot)))
  return { pods: pods.map(nameKey).sort(), hostEndpoints: hosts.map(({ name }) => name).sort() }
}

/** names that a line has room for */
const MOST_NAMED = 5

export function selectionTable(records: readonly SelectionRecord[]): string {
  const rows = records.map(({ policy, tier, tierExists, order, ingress, egress, scope, staged, closed, pods, hostEndpoints }) => [
    policy.replace('/', ' '),
    `${tier}${tierExists === false ? ' (not defined)' : ''}`,
    order === null ? 'last' : String(order),
    ingress === null ? '-' : String(ingress),
    egress === null ? '-' : String(egress),
    [scope === 'normal' ? '' : scope, staged === null ? '' : `staged ${staged}`, closed ? 'closed' : '']
      .filter((word) => word !== '')
      .join(' ') || '-',
    namesText([...pods, ...hostEndpoints.map((name) => `HostEndpoint ${name}`)]),
  ])
  return `${table([['POLICY', 'TIER', 'ORDER', 'INGRESS', 'EGRESS', 'OPTIONS', 'SELECTS'], ...rows])}\n`
}

function namesText(names: readonly string[]): string {
  if (names.length === 0) return 'nothing'
  const more = names.length - MOST_NAMED
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
