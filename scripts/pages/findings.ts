// SPDX-License-Identifier: Apache-2.0
/** docs/generated/findings.md: what a preflight may find, from lib/preflight/findings.ts. Layer: scripts. */
import { FINDINGS, isFindingCode, type FindingCode } from '#lib/preflight/findings.ts'

export function findingsPage(): string {
  const codes = Object.keys(FINDINGS).filter(isFindingCode)
  const groups = Map.groupBy(codes, (code) => FINDINGS[code].group)
  const sections = [...groups].map(
    ([group, of]) => `## ${group}\n\n| code | level | what it is | what to do |\n| --- | --- | --- | --- |\n${of.map(rowOf).join('\n')}\n`,
  )
  return `<!-- Made by scripts/generate-docs.ts from lib/preflight/findings.ts: change it there. -->
# What a preflight may find

Words in capitals stand for what was found. [Preflight](../preflight.md) says how it looks.

${sections.join('\n')}`
}

function rowOf(code: FindingCode): string {
  const { level, args, text, remedy } = FINDINGS[code]
  const words = args.map((name) => name.toUpperCase())
  return `| \`${code}\` | ${level} | ${text(words)} | ${remedy(words)} |`
}
