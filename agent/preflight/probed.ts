// SPDX-License-Identifier: Apache-2.0
/** What the probes of a group have found. Layer: agent. */
import { describe, levelOf, type Finding, type ProbeGroup } from '#lib/preflight/findings.ts'
import type { Facts } from '#lib/preflight/report.ts'

export interface Probed {
  readonly findings: readonly Finding[]
  readonly facts: Facts
}

/** For people, a line each. */
export function probedText(group: ProbeGroup, { findings, facts }: Probed): string {
  const lines = [
    ...Object.entries(facts).map(([name, value]) => `note: ${name} ${value}`),
    ...findings.map((one) => `${levelOf(one.code)}: ${describe(one)}`),
  ]
  return lines.map((line) => `${group}: ${line}\n`).join('') || `${group}: nothing found\n`
}
