// SPDX-License-Identifier: Apache-2.0
/** The steps of the storage, in their order. Layer: upgrade. */
import type { Step } from '../steps/step.ts'
import type { ReadInstallation } from '../stored/installation.ts'
import { admissionStep } from './admission.ts'
import { apiServiceStep } from './api-service.ts'
import { definitionsStep } from './definitions.ts'
import { importStep } from './import.ts'
import { lockStep, unlockStep } from './lock.ts'
import { networksStep } from './networks.ts'
import type { StorageOptions } from './options.ts'
import { ownersBackStep, ownersKeptStep } from './owners.ts'
import { verdictsStep } from './verdicts.ts'

/** All before the agents are rolled. `found`: as it was read for the plan. */
export function storageSteps(options: StorageOptions, found: ReadInstallation): readonly Step[] {
  return [
    ownersKeptStep(options),
    lockStep(options),
    apiServiceStep(options),
    definitionsStep(options),
    importStep(options, found),
    networksStep(options),
    verdictsStep(options),
    unlockStep(options),
    admissionStep(options),
    ownersBackStep(options),
  ]
}
