// SPDX-License-Identifier: Apache-2.0
/** Workloads of this version in the place of older ones of the same names: agents node by node, then controllers.
 * Layer: upgrade.
 *
 * Which objects are applied already is seen on each: once a workload runs this version its settings are its own, as
 * those of the older one are gone with it. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { takeOver } from '#lib/api/take-over.ts'
import type { Clock } from '#lib/base/clock.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { rolloutState } from '#lib/control/rollout.ts'
import { keepSelector } from '#lib/render/kept-selector.ts'
import { isApplied, WORKLOADS } from './applied.ts'
import { objectNameText } from './object-text.ts'
import type { Step, StepState, Tell } from './step.ts'

export interface RollInput {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'apply' | 'patch'>
  readonly clock: Clock
  /** our name as an owner of fields */
  readonly manager: string
  /** as they are rendered: what workloads need comes before them */
  readonly objects: readonly ApiObject[]
  /** for each workload to be everywhere */
  readonly timeoutMs: number
}

const LOOK_MS = 1000
/** Others may write the object at the same time. */
const TRIES = 5

/** All but its name and what it says of itself. */
export function rollOf(input: RollInput): Pick<Step, 'look' | 'run'> {
  return { look: (signal) => look(input, signal), run: (signal, tell) => run(input, signal, tell) }
}

async function look(input: RollInput, signal: AbortSignal): Promise<StepState> {
  const left: string[] = []
  for (const object of input.objects) {
    const found = await getOrNone(input.client, namedOf(object), { signal })
    const text = isApplied(found, object, input.manager)
      ? await rollout(input, object, signal)
      : `${objectNameText(object)} is not of this version`
    if (text !== undefined) left.push(text)
  }
  return { isDone: left.length === 0, problems: [], left }
}

async function run(input: RollInput, signal: AbortSignal, tell: Tell): Promise<void> {
  for (const object of input.objects) {
    const found = await getOrNone(input.client, namedOf(object), { signal })
    if (!isApplied(found, object, input.manager)) await put(input, object, signal)
    await wait({ ...input, tell }, object, signal)
  }
}

/** Fields of other clients go, but for labels and annotations. */
async function put({ client, manager }: RollInput, object: ApiObject, signal: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries++) {
    const found = await getOrNone(client, namedOf(object), { signal })
    const patch = found && takeOver(found, manager)
    try {
      if (patch !== undefined) await client.patch(namedOf(object), patch, { type: 'merge', signal })
      await client.apply(keepSelector(object, found), { fieldManager: manager, force: true, signal })
      return
    } catch (thrown) {
      if (!isRefused(thrown, 'Conflict') || tries === TRIES) throw thrown
    }
  }
}

/** Resolves when it is everywhere, or the time is over. */
async function wait(input: RollInput & { readonly tell: Tell }, object: ApiObject, signal: AbortSignal): Promise<void> {
  const end = input.clock.now() + input.timeoutMs
  let told = ''
  for (;;) {
    const text = await rollout(input, object, signal)
    if (text === undefined || input.clock.now() >= end) return
    if (text !== told) input.tell(text)
    told = text
    await input.clock.sleep(LOOK_MS, signal)
  }
}

/** What is still to come of a workload; undefined: nothing. */
async function rollout({ client }: RollInput, object: ApiObject, signal: AbortSignal): Promise<string | undefined> {
  if (!WORKLOADS.has(object.kind)) return undefined
  const found = await getOrNone(client, namedOf(object), { signal })
  const labelSelector = Object.entries(fieldsOf(fieldsOf(fieldsOf(found?.['spec'])['selector'])['matchLabels']))
    .map(([key, value]) => `${key}=${textOf(value)}`)
    .join()
  const { namespace } = object.metadata
  const pods = labelSelector === '' ? [] : await client.list({ apiVersion: 'v1', kind: 'Pod', namespace }, { labelSelector, signal })
  const { progressing, degraded } = rolloutState(found, pods)
  const cause = degraded ?? progressing
  return cause && `${objectNameText(object)}: ${cause.message}`
}
