// SPDX-License-Identifier: Apache-2.0
/** A command run on this node's maps. Layer: cli. */
import { monotonicNs } from '#native'
import type { ReportOrder } from './args.ts'
import { interfaceNames } from './interfaces.ts'
import { PinnedTables } from './pins.ts'

/** What is to be printed, piece by piece. Throws PinsError when the maps cannot be read. */
export async function* reportTexts({ command, pins, json, filter, all }: ReportOrder): AsyncGenerator<string> {
  using tables = new PinnedTables(pins)
  yield* command.print({ tables, interfaceName: interfaceNames(), nowMs: monotonicNs() / 1e6, filter, all }, json)
}
