// SPDX-License-Identifier: Apache-2.0
/** `import`: all that is stored, as objects of this version. Layer: upgrade.
 *
 * It keeps no record: what is there as it is to be is left, and what is otherwise is written again. `unlock` ends that:
 * from there the objects are in use. */
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { errorText } from '#lib/base/errors.ts'
import { ApiError, isRefused } from '#lib/api/errors.ts'
import { namedOf } from '#lib/api/resource.ts'
import type { ReadInstallation } from '../stored/installation.ts'
import type { Step, Tell } from '../steps/step.ts'
import { aggregatedService } from './api-service.ts'
import { isImported } from './cluster-information.ts'
import { countText, inStages, type ImportPlan, type Write } from './import-plan.ts'
import { importState } from './import-state.ts'
import { AS_US, StepFailedError, type StorageClient, type StorageOptions } from './options.ts'

const STEP = 'import'
const AT_ONCE = 16
/** Objects, then their owners' UIDs; once more where another program writes meanwhile. */
const ROUNDS = 4

/** `found`: as it was read for the plan. */
export function importStep(options: StorageOptions, found: ReadInstallation): Step {
  const { client } = options
  const count = found.outcomes.filter((outcome) => 'object' in outcome).length
  return {
    name: STEP,
    about: `writes ${count} objects as netplane.io/v3, and compares each with what the server then has`,
    commands: [],
    look: async (signal) => {
      if (await isImported(client, signal)) return { isDone: true, problems: [] }
      // the objects that it shows are the stored ones themselves
      if ((await aggregatedService(client, { signal })) !== undefined) return { isDone: false, problems: [] }
      const { writes, problems } = await importState(options, signal)
      return { isDone: writes.length === 0 && problems.length === 0, problems }
    },
    run: async (signal, tell) => {
      if (await isImported(client, signal)) return
      const { counts, left } = await importAll(options, signal, tell)
      for (const count of counts) tell(countText(count))
      for (const text of left) tell(`left ${text}`)
    },
  }
}

async function importAll(options: StorageOptions, signal: AbortSignal, tell: Tell): Promise<ImportPlan> {
  for (let round = 0; round < ROUNDS; round++) {
    const plan = await importState(options, signal)
    if (plan.problems.length > 0) throw new StepFailedError(STEP, plan.problems)
    if (plan.writes.length === 0) return plan
    tell(`writes ${plan.writes.length} objects`)
    await writeAll(options.client, plan.writes, signal)
  }
  const { writes } = await importState(options, signal)
  throw new StepFailedError(
    STEP,
    writes.map(({ text }) => `${text} is not as it was written: another program changes it`),
  )
}

/** Stage by stage. What the server refuses is told at the end of its stage, all of it. */
async function writeAll(client: StorageClient, writes: readonly Write[], signal: AbortSignal): Promise<void> {
  for (const stage of inStages(writes)) {
    const refused = await mapLimited(stage, AT_ONCE, (write) => writeOne(client, write, signal))
    const reasons = refused.filter((reason) => reason !== undefined)
    if (reasons.length > 0) throw new StepFailedError(STEP, reasons)
  }
}

/** Undefined: it is done, or another program was faster and the next round sees to it. */
async function writeOne(client: StorageClient, write: Write, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted()
  try {
    await put(client, write, signal)
    return undefined
  } catch (thrown) {
    if (isRefused(thrown, 'AlreadyExists', 'Conflict')) return undefined
    if (thrown instanceof ApiError) return `${write.text}: ${errorText(thrown)}`
    throw thrown
  }
}

async function put(client: StorageClient, { object, before }: Write, signal: AbortSignal): Promise<void> {
  const options = { ...AS_US, signal }
  if (before === undefined) {
    await client.create(object, options)
    return
  }
  const { uid = '', resourceVersion = '' } = before.metadata
  try {
    await client.update({ ...object, metadata: { ...object.metadata, resourceVersion } }, options)
  } catch (thrown) {
    // a field that cannot be changed: nothing goes by the object yet
    if (!isRefused(thrown, 'Invalid')) throw thrown
    await client.delete(namedOf(object), { preconditions: { uid }, signal })
    await client.create(object, options)
  }
}
