// SPDX-License-Identifier: Apache-2.0
/** Arguments of `migrate …`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import type { QuestionCommand } from '../commands.ts'
import { secondsOf, type Given } from '../given.ts'
import { CLUSTER_FLAGS, clusterChoice, type ClusterChoice } from '../install/order.ts'

export interface MigrateOrder extends ClusterChoice {
  readonly kind: 'migrate host-endpoints'
  /** false: the command prints what it would do, and does nothing */
  readonly writes: boolean
  readonly timeoutMs: number
  readonly json: boolean
}

const WAIT_SECONDS = 120

export const migrateCommands: readonly (QuestionCommand & { readonly name: MigrateOrder['kind'] })[] = [
  {
    name: 'migrate host-endpoints',
    about: 'from host endpoints of all interfaces to automatic ones: labels to nodes, both compared, the old ones deleted',
    words: '',
    flags: [
      ...CLUSTER_FLAGS,
      { name: 'yes', about: 'does it; else the command prints what it would do' },
      { name: 'dry-run', about: 'writes nothing, whatever other flags ask' },
      { name: 'timeout', value: 'SECONDS', about: `for automatic ones to come (default: ${WAIT_SECONDS})` },
    ],
  },
]

/** Throws ConfigError. */
export function readMigrate(kind: MigrateOrder['kind'], given: Given): MigrateOrder {
  const [word] = given.words
  if (word !== undefined) throw new ConfigError(kind, `${JSON.stringify(word)} is too much`)
  const writes = given.has('yes') && !given.has('dry-run')
  return { kind, ...clusterChoice(given), writes, timeoutMs: secondsOf(given, WAIT_SECONDS), json: given.has('json') }
}
