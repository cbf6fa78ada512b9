// SPDX-License-Identifier: Apache-2.0
/** All that an installation is looked at for before it is upgraded, in the order in which a plan lists it.
 * Layer: upgrade (pure). */
import type { Check } from './check.ts'
import { CLUSTER_REFUSALS } from './checks/cluster.ts'
import { INSTALLATION_REFUSALS, INSTALLATION_WARNINGS } from './checks/installation.ts'
import { MANAGER_REFUSALS, MANAGER_WARNINGS } from './checks/managers.ts'
import { SIDE_CAR_REFUSALS, SIDE_CAR_WARNINGS } from './checks/side-cars.ts'
import { STORAGE_REFUSALS, STORAGE_WARNINGS } from './checks/storage.ts'
import { WAY_REFUSALS } from './checks/ways.ts'

/** An upgrade is not begun. */
export const REFUSALS: readonly Check[] = [
  ...CLUSTER_REFUSALS,
  ...INSTALLATION_REFUSALS,
  ...STORAGE_REFUSALS,
  ...WAY_REFUSALS,
  ...MANAGER_REFUSALS,
  ...SIDE_CAR_REFUSALS,
]

/** An upgrade is begun all the same. */
export const WARNINGS: readonly Check[] = [...INSTALLATION_WARNINGS, ...STORAGE_WARNINGS, ...MANAGER_WARNINGS, ...SIDE_CAR_WARNINGS]
