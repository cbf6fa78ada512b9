// SPDX-License-Identifier: Apache-2.0
/** Flows of a list, before and after. Layer: cli (pure). */
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { formatAddr, isV4 } from '#lib/base/ip.ts'
import { table } from '#lib/base/table.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Check, Step } from '../explain/manifests/endpoint-check.ts'
import type { Trace } from '../explain/manifests/trace.ts'
import { explain } from '../explain/manifests/explain.ts'
import { packetsOf } from '../explain/manifests/flows.ts'
import { readFlow } from '../explain/query.ts'
import type { Clusters } from '../explain/manifests/load-cluster.ts'

export interface FlowChange {
  /** as it is in the list */
  readonly flow: string
  readonly family: 'IPv4' | 'IPv6'
  readonly source: string
  readonly destination: string
  readonly before: Trace['verdict']
  readonly after: Trace['verdict']
  /** with the staged policies of either */
  readonly stagedBefore: Trace['verdict']
  readonly stagedAfter: Trace['verdict']
  /** what decides afterwards: "NetworkPolicy/shop/db ingress 0" */
  readonly by: readonly string[]
  readonly changes: boolean
  readonly disagreements: readonly string[]
}

/** One for each family of the flow. Throws ConfigError that names the line. */
export function flowChanges(
  { file, at, line }: { readonly file: string; readonly at: number; readonly line: string },
  worlds: Clusters,
): readonly FlowChange[] {
  try {
    return packetsOf(worlds.candidate ?? worlds.now, readFlow(line)).map((packet) => changeOf(line, packet, worlds))
  } catch (thrown) {
    throw new ConfigError(`${file}:${at}`, errorText(thrown), thrown)
  }
}

function changeOf(flow: string, packet: Packet, worlds: Clusters): FlowChange {
  const { now, staged, candidate, disagreements } = explain(worlds, packet, { entry: undefined, device: undefined })
  const after = candidate?.now ?? now
  const verdicts = {
    before: now.verdict,
    after: after.verdict,
    stagedBefore: (staged ?? now).verdict,
    stagedAfter: (candidate?.staged ?? after).verdict,
  }
  return {
    flow,
    family: isV4(packet.dst) ? 'IPv4' : 'IPv6',
    source: formatAddr(packet.src),
    destination: formatAddr(packet.dst),
    ...verdicts,
    by: decidersOf(verdicts.before === verdicts.after ? (candidate?.staged ?? after) : after),
    changes: verdicts.before !== verdicts.after || verdicts.stagedBefore !== verdicts.stagedAfter,
    disagreements,
  }
}

/** What has denied, else all that has allowed. */
function decidersOf({ outcomes }: Trace): readonly string[] {
  const checks = outcomes.flatMap((outcome) => outcome.checks)
  const denying = checks.filter(({ verdict }) => verdict === 'deny')
  return [...new Set((denying.length > 0 ? denying : checks).flatMap((check) => deciderText(check, check.steps.at(-1))))]
}

function deciderText({ direction }: Check, step: Step | undefined): readonly string[] {
  if (step === undefined || (step.by === null && step.tier === null)) return []
  return [step.by === null ? `Tier/${step.tier ?? ''} ${direction} end` : `${step.by} ${direction} ${step.rule ?? 0}`]
}

/** Those that change alone. */
export function flowTable(flows: readonly FlowChange[]): string {
  const changed = flows.filter(({ changes }) => changes)
  const rows = changed.map(({ flow, family, before, after, stagedBefore, stagedAfter, by }) => [
    flow,
    family,
    before,
    after,
    stagedBefore === before && stagedAfter === after ? '-' : `${stagedBefore} -> ${stagedAfter}`,
    by.join(', '),
  ])
  const head = `${changed.length} of ${flows.length} flows change`
  return rows.length === 0 ? `${head}\n` : `${head}\n${table([['FLOW', 'FAMILY', 'BEFORE', 'AFTER', 'STAGED', 'BY'], ...rows])}\n`
}
