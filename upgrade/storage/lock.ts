// SPDX-License-Identifier: Apache-2.0
/** `lock`: old agents and programs write no stored object any more. `unlock`: those of this version may write ours.
 * Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { pluralOf } from '#lib/api/resource.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { STORED_API_VERSION } from '../stored/outcome.ts'
import type { Step } from '../steps/step.ts'
import { IMPORTED_FROM, isImported, isStoredThere, LOCKED_AT, lockedAt, STORED_INFORMATION } from './cluster-information.ts'
import { importState } from './import-state.ts'
import { FIELD_MANAGER, StepFailedError, type StorageOptions } from './options.ts'

const DRAIN_MS = 10_000
const PLURAL = pluralOf(CLUSTER_INFORMATION.kind)
function patchCommand(plural: string, isReady: boolean): string {
  return `kubectl patch ${plural} default --type merge -p '{"spec":{"datastoreReady":${isReady}}}'`
}

/** Agents hear of it by their watch: what they write until then is waited for. */
export function lockStep(options: StorageOptions): Step {
  const { client, clock, drainMs = DRAIN_MS } = options
  const remaining = async (signal: AbortSignal): Promise<number> => {
    if (!(await isStoredThere(client, signal))) return 0
    const at = lockedAt(await getOrNone(client, STORED_INFORMATION, { signal }))
    return at === undefined ? Infinity : Math.max(0, at + drainMs - clock.wall())
  }
  return {
    name: 'lock',
    about: `locks what is stored (datastoreReady: false), and waits ${drainMs / 1000} s: no pod gets or gives back an address until its node has an agent of this version`,
    commands: [patchCommand(`${PLURAL}.crd.netplane.io`, false)],
    look: async (signal) => ({ isDone: (await remaining(signal)) === 0, problems: [] }),
    run: async (signal) => {
      if ((await remaining(signal)) === Infinity) await lock(options, signal)
      await clock.sleep(Math.min(await remaining(signal), drainMs), signal)
    },
  }
}

async function lock({ client, clock }: StorageOptions, signal: AbortSignal): Promise<void> {
  const change = {
    metadata: { annotations: { [LOCKED_AT]: new Date(clock.wall()).toISOString() } },
    spec: { datastoreReady: false },
  }
  try {
    await client.patch(STORED_INFORMATION, change, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
    const { name, ...kind } = STORED_INFORMATION
    await client.create({ ...kind, ...change, metadata: { name, ...change.metadata } }, { fieldManager: FIELD_MANAGER, signal })
  }
}

/** From here nothing is imported again. What is stored stays locked. */
export function unlockStep(options: StorageOptions): Step {
  const { client } = options
  return {
    name: 'unlock',
    about: 'unlocks the imported objects (datastoreReady: true): from here there is no way back to those that are stored',
    commands: [patchCommand(`${PLURAL}.netplane.io`, true)],
    look: async (signal) => ({ isDone: await isImported(client, signal), problems: [] }),
    run: async (signal) => {
      const { writes, problems } = await importState(options, signal)
      const left = writes.map(({ text }) => `${text} is not as it is stored`)
      if (problems.length + left.length > 0) throw new StepFailedError('unlock', [...problems, ...left])
      const change = { metadata: { annotations: { [IMPORTED_FROM]: STORED_API_VERSION } }, spec: { datastoreReady: true } }
      await client.patch(CLUSTER_INFORMATION, change, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
    },
  }
}

/** The way back. */
export async function unlockStored({ client }: StorageOptions, signal: AbortSignal): Promise<void> {
  const change = { metadata: { annotations: { [LOCKED_AT]: null } }, spec: { datastoreReady: true } }
  await client.patch(STORED_INFORMATION, change, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
}
