// SPDX-License-Identifier: Apache-2.0
/** The page about FelixConfiguration, made from the schema. Layer: agent/config (pure). */
import { allFields } from './schema.ts'
import { unimplemented } from './unimplemented.ts'

/** docs/generated/config.md */
export function configPage(): string {
  const rows = allFields.map(({ name, parser, fallbackText, change, doc }) =>
    row([
      `\`${name}\``,
      parser.type,
      fallbackText === '' ? '' : `\`${fallbackText}\``,
      change === 'live' ? 'at once' : 'at the next start',
      doc,
    ]),
  )
  const refusals = [...unimplemented].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([name, { reason }]) => row([`\`${name}\``, reason]))
  return `<!-- Made by scripts/generate-docs.ts from agent/config: change it there. -->
# Configuration: FelixConfiguration (netplane.io/v3)

The object named \`default\` is for all nodes, \`node.<name>\` for one; field by field the latter goes first. Fields not listed are refused by
name. A value that cannot be used is reported, and the field's last good value stays in force.

${[row(['field of spec', 'type', 'default', 'takes effect', 'meaning']), row(['---', '---', '---', '---', '---']), ...rows].join('\n')}

## Refused fields

Known from elsewhere, and not obeyed here:

${[row(['field of spec', 'why']), row(['---', '---']), ...refusals].join('\n')}
`
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
