// SPDX-License-Identifier: Apache-2.0
/** The step after which flannel no longer depends on the DaemonSet that is rolled. Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import type { Clock } from '#lib/base/clock.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { fieldsOf } from '#lib/base/object.ts'
import type { Step, StepState } from '../steps/step.ts'
import { FLANNEL, splitFlannel } from './split.ts'

export interface FlannelOptions {
  readonly client: Pick<ApiClient, 'get' | 'apply'>
  readonly clock: Clock
  /** that has flannel beside the agent */
  readonly daemonSet: ApiObject
  /** of both */
  readonly configMap: ApiObject
}

const LOOK_MS = 1000
/** Nodes that are away are told by the look that follows. */
const WAIT_MS = 300_000

export function flannelStep(options: FlannelOptions): Step {
  const { namespace = '', name } = options.daemonSet.metadata
  const objects = splitFlannel(options.daemonSet, options.configMap)
  return {
    name: 'flannel',
    about: `flannel leaves DaemonSet ${namespace}/${name}: it is in DaemonSet ${namespace}/${FLANNEL} before that is rolled`,
    commands: [],
    look: (signal) => look(options, objects, signal),
    run: async (signal, tell) => {
      for (const object of objects) await options.client.apply(object, { signal })
      await untilReady(options, objects, { signal, tell })
    },
  }
}

async function look({ client }: FlannelOptions, objects: readonly ApiObject[], signal: AbortSignal): Promise<StepState> {
  const found = await Promise.all(objects.map((object) => getOrNone(client, namedOf(object), { signal })))
  const missing = found.some((object) => object === undefined)
  const daemonSet = found.find((object) => object?.kind === 'DaemonSet')
  if (daemonSet === undefined || missing) return { isDone: false, problems: [] }
  const wanted = objects.find(({ kind }) => kind === 'DaemonSet')
  if (!deepEqual(fieldsOf(daemonSet['spec'])['selector'], fieldsOf(wanted?.['spec'])['selector']))
    return {
      isDone: false,
      problems: [`DaemonSet ${daemonSet.metadata.namespace ?? ''}/${FLANNEL} is there already, and selects other pods`],
    }
  const { ready, of, isSettled } = progressOf(daemonSet)
  return isSettled ? { isDone: true, problems: [] } : { isDone: false, problems: [], left: [progressText(ready, of)] }
}

async function untilReady(
  { client, clock }: FlannelOptions,
  objects: readonly ApiObject[],
  { signal, tell }: { readonly signal: AbortSignal; readonly tell: (text: string) => void },
): Promise<void> {
  const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet')
  if (daemonSet === undefined) return
  const end = clock.now() + WAIT_MS
  for (let told = ''; clock.now() < end;) {
    const { ready, of, isSettled } = progressOf(await client.get(namedOf(daemonSet), { signal }))
    const text = progressText(ready, of)
    if (text !== told) tell((told = text))
    if (isSettled) return
    await clock.sleep(LOOK_MS, signal)
  }
}

function progressText(ready: number, of: number): string {
  return `flannel of its own runs on ${ready} of ${of} nodes`
}

/** A controller that has not seen the object yet counts nothing. */
function progressOf({ metadata, status }: ApiObject): { readonly ready: number; readonly of: number; readonly isSettled: boolean } {
  const { observedGeneration, desiredNumberScheduled, updatedNumberScheduled, numberReady } = fieldsOf(status)
  const of = numberOf(desiredNumberScheduled)
  const ready = Math.min(numberOf(numberReady), numberOf(updatedNumberScheduled))
  return { ready, of, isSettled: observedGeneration === metadata.generation && of > 0 && ready === of }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
