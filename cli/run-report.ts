// SPDX-License-Identifier: Apache-2.0
/** A command run on this node's maps. Layer: cli. */
import { monotonicNs } from '#native'
import { ruleNames } from './agent.ts'
import type { ReportOrder } from './args.ts'
import { AGENT } from './commands.ts'
import { interfaceNames } from './interfaces.ts'
import { PinnedTables } from './pins.ts'
import { NO_NAMES } from './rules.ts'

/** What is to be printed, piece by piece. Throws PinsError when the maps cannot be read. */
export async function* reportTexts({ command, pins, agent, json, filter, all }: ReportOrder): AsyncGenerator<string> {
  using tables = new PinnedTables(pins)
  // numbers do where no agent runs
  const names = command.flags.includes(AGENT) ? await ruleNames(agent) : NO_NAMES
  yield* command.print({ tables, names, interfaceName: interfaceNames(), nowMs: monotonicNs() / 1e6, filter, all }, json)
}
