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
  const refusals = [...unimplemented]
    .sort((a, b) => (a[0] < b[0] ? -1 : 1))
    .map(([name, { reason, unless }]) => row([`\`${name}\``, unless === undefined ? '' : `\`${unless}\``, reason]))
  return `<!-- Made by scripts/generate-docs.ts from agent/config: change it there. -->
# Configuration: FelixConfiguration (netplane.io/v3)

A setting comes from the first of these that has its field:

1. Variables of the agent's environment: \`FELIX_\` and the field's name in capitals, a dot as \`_\`. \`FELIX_HEALTHPORT=9099\`
   is one. Lists are by commas, or as JSON.
2. The file of \`--config\`: a YAML mapping of the same fields, read at the start.
3. The object named \`node.<name>\`.
4. The object named \`default\`.
5. The defaults below.

Which one it was is in the log (\`configuration.applied\`), at \`/config\` of the health port, and counted by \`netplane_config_fields\`.

Fields not listed are refused by name. A value that cannot be used is reported with its field and the reason, and the field's last good value stays in force.
Changes that wait for the agent's next start are in the condition \`config.in-force\` of \`/readiness\`, which makes no node unready.

${[row(['field of spec', 'type', 'default', 'takes effect', 'meaning']), row(['---', '---', '---', '---', '---']), ...rows].join('\n')}

## Refused fields

Known from elsewhere, and not obeyed here:

${[row(['field of spec', 'unless it is', 'why']), row(['---', '---', '---']), ...refusals].join('\n')}
`
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
