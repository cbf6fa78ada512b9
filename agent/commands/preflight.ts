// SPDX-License-Identifier: Apache-2.0
/** netplane-agent preflight. Layer: agent. */
import { writeFileSync } from 'node:fs'
import { errorText } from '#lib/base/errors.ts'
import { levelOf } from '#lib/preflight/findings.ts'
import { MOST_REPORT_BYTES, writeReport } from '#lib/preflight/report.ts'
import type { PreflightOptions } from '../preflight/options.ts'
import { probe } from '../preflight/probe.ts'
import { probedText, type Probed } from '../preflight/probed.ts'

/** Prints what was found in words, and leaves the report. Returns the exit code: 0 it could look, 1 with `check` it has
 * found what is blocking, 2 it could not look. */
export async function preflightCommand(options: PreflightOptions): Promise<number> {
  const all: Probed[] = []
  const failures: string[] = []
  for (const group of options.groups) {
    try {
      const probed = await probe(group, options)
      process.stdout.write(probedText(group, probed))
      all.push(probed)
    } catch (thrown) {
      failures.push(`${group}: ${errorText(thrown)}`)
      process.stderr.write(`netplane-agent: ${group} could not be looked at: ${errorText(thrown)}\n`)
    }
  }
  const findings = all.flatMap((one) => one.findings)
  const facts = Object.fromEntries(all.flatMap((one) => Object.entries(one.facts)))
  const report = failures.length > 0 ? failures.join('; ') : writeReport(findings, MOST_REPORT_BYTES, facts)
  if (options.terminationLog !== undefined) writeFileSync(options.terminationLog, report)
  if (failures.length > 0) return 2
  return options.check && findings.some(({ code }) => levelOf(code) === 'blocking') ? 1 : 0
}
