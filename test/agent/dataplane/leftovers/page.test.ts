// SPDX-License-Identifier: Apache-2.0
/** The page says what the agent removes, and by which names. Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { OLD_CHAINS, OLD_DEVICE, OLD_TABLE } from '#agent/dataplane/leftovers/old.ts'
import { ROUTE_PROTOCOL } from '#agent/interfaces/netlink/route.ts'
import { packageRoot } from '#lib/base/os/package.ts'

test('docs/upgrade-node.md names what goes as the agent knows it', () => {
  const page = readFileSync(`${packageRoot()}/docs/upgrade-node.md`, 'utf8')
  const [, section = ''] = /\n## What goes\n(.*?)\n## /s.exec(page) ?? []
  const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| what'))
  expect(rows.map((row) => row.split('|')[2]?.trim())).toEqual([
    `protocol ${ROUTE_PROTOCOL}`,
    OLD_CHAINS.map((start) => `\`${start}*\``).join(', '),
    '`--comment "npl:HASH"`',
    `\`${OLD_TABLE}\``,
    `\`${OLD_DEVICE}\``,
  ])
})
