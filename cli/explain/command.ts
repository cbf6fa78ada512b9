// SPDX-License-Identifier: Apache-2.0
/** `explain`: of manifests, or of this node's own maps and programs. Layer: cli. */
import type { ExplainOrder } from '../args.ts'
import type { CommandResult } from '../command-result.ts'
import { explainOffline } from './manifests/command.ts'

/** Throws ConfigError, or PinsError when the maps cannot be read. */
export async function explainCommand(order: ExplainOrder): Promise<CommandResult> {
  const { resources } = order
  if (resources !== undefined) return await explainOffline({ ...order, resources })
  const { explainOnline } = await import('#cli/explain/live/command.ts')
  return await explainOnline(order)
}
