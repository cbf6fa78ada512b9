// SPDX-License-Identifier: Apache-2.0
/** What a command prints for given maps. Layer: test. */
import { text } from 'node:stream/consumers'
import { readArgs } from '../../cli/args.ts'
import { NO_NAMES, type RuleNames } from '../../cli/rules.ts'
import type { FakeTables } from '../support/fakes/fake-tables.ts'

/** ms on the programs' clock when the command asks */
export const NOW_MS = 10_000_000

/** Interface 7 is "if7". The line is what comes after "netplanectl". */
export async function answer(line: string, tables: FakeTables, names: RuleNames = NO_NAMES): Promise<string> {
  const order = readArgs(line.split(' '))
  if (order.kind !== 'report') throw new Error(`${line} reads no maps`)
  const { command, json, filter, all } = order
  return await text(command.print({ tables, interfaceName: (index) => `if${index}`, nowMs: NOW_MS, names, filter, all }, json))
}
