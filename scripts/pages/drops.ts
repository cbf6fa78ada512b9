// SPDX-License-Identifier: Apache-2.0
/** docs/generated/drops.md: the reasons and counters of the programs, from bpf/include/types/reason.h.
 * Layer: scripts. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const LINE = /^\t(DROP|COUNT)_(\w+)[ =0-9]*,\s*\/\* (.*) \*\/$/gm

export function dropsPage(): string {
  const header = readFileSync(fileURLToPath(new URL('../../bpf/include/types/reason.h', import.meta.url)), 'utf8')
  const lines = [...header.matchAll(LINE)].map(([, kind, name = '', meaning]) => ({
    kind,
    text: `| \`${name.toLowerCase()}\` | ${meaning ?? ''} |`,
  }))
  const table = (kind: string) =>
    lines
      .filter((line) => line.kind === kind)
      .map((line) => line.text)
      .join('\n')
  return `<!-- Made by scripts/generate-docs.ts from bpf/include/types/reason.h: change it there. -->
# Why packets end, and what else is counted

Every drop has a reason; metric and tools use the same names.

## \`netplane_drops_total{reason=…}\`

| reason | meaning |
| --- | --- |
${table('DROP')}

## \`netplane_packets_total{event=…}\`

| event | meaning |
| --- | --- |
${table('COUNT')}
`
}
