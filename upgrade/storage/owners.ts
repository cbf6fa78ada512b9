// SPDX-License-Identifier: Apache-2.0
/** `owners-kept` and `owners-back`: no object is collected because its owner has another UID now. Layer: upgrade. */
import { deadOwners, keepOwners, restoreOwners } from '../owners/move.ts'
import { ourReferences } from '../owners/references.ts'
import { scanOwners } from '../owners/scan.ts'
import type { Step } from '../steps/step.ts'
import { API_VERSION } from '../stored/outcome.ts'
import { isImported } from './cluster-information.ts'
import { readInput } from './import-state.ts'
import { StepFailedError, type StorageOptions } from './options.ts'
import { ownerNames } from './owner-names.ts'

export function ownersKeptStep(options: StorageOptions): Step {
  const { client } = options
  return {
    name: 'owners-kept',
    about: 'takes owner references to objects of ours from all objects, and keeps each on the object that had it',
    commands: [],
    look: async (signal) => {
      // from there owners are those of today
      if (await isImported(client, signal)) return { isDone: true, problems: [] }
      const { dependents, problems } = await scanOwners(client)
      const inTheWay = problems.filter((text) => !isOfOurServer(text))
      return { isDone: inTheWay.length === 0 && dependents.every(({ object }) => ourReferences(object).length === 0), problems: inTheWay }
    },
    run: async (_, tell) => {
      const { changed, problems } = await keepOwners(client)
      const inTheWay = problems.filter((text) => !isOfOurServer(text))
      if (inTheWay.length > 0) throw new StepFailedError('owners-kept', inTheWay)
      for (const text of changed) tell(`kept the owners of ${text}`)
    },
  }
}

/** Owners among objects of our own are read from what is stored, whether the old API answers or not. */
function isOfOurServer(problem: string): boolean {
  return problem.startsWith(`${API_VERSION}:`)
}

export function ownersBackStep(options: StorageOptions): Step {
  const { client } = options
  return {
    name: 'owners-back',
    about: 'puts the owner references back with the UIDs of today, and finds each owner',
    commands: [],
    look: async (signal) => ({
      isDone: (await isImported(client, signal)) && (await deadOwners(client)).length === 0,
      problems: [],
    }),
    run: async (signal, tell) => {
      const { objects } = await readInput(options, signal)
      const { changed, problems } = await restoreOwners(client, ownerNames(objects))
      for (const text of changed) tell(`put the owners of ${text} back`)
      const dead = problems.length > 0 ? [] : await deadOwners(client)
      if (problems.length + dead.length > 0) throw new StepFailedError('owners-back', [...problems, ...dead])
    },
  }
}
