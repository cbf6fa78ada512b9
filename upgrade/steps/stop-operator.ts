// SPDX-License-Identifier: Apache-2.0
/** The operator of an older version, before what it looks after is taken from it: it would make its API service again.
 * Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import type { Clock } from '#lib/base/clock.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { waitFor, type StorageOptions } from '../storage/options.ts'
import { workloadImage } from './workload-image.ts'
import type { Step } from './step.ts'

export interface StopOperatorInput {
  readonly client: Pick<ApiClient, 'get' | 'patch'>
  readonly clock: Clock
  /** its namespace */
  readonly namespace: string
  /** "3.31.5": one of this version is left alone */
  readonly version: string
}

const STEP = 'operator-stopped'

export function stopOperatorStep({ client, clock, namespace, version }: StopOperatorInput): Step {
  const deployment: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: OPERATOR }
  const running = async (signal: AbortSignal): Promise<string | undefined> => {
    const found = await getOrNone(client, deployment, { signal })
    return found === undefined || isStopped(found) || workloadImage(found).endsWith(`:${version}`)
      ? undefined
      : `Deployment ${namespace}/${OPERATOR} still runs`
  }
  return {
    name: STEP,
    about: 'stops the operator of the older version, which would undo the next steps; agents go on',
    commands: [`kubectl -n ${namespace} scale deployment ${OPERATOR} --replicas=0`],
    look: async (signal) => ({ isDone: (await running(signal)) === undefined, problems: [] }),
    run: async (signal) => {
      await client.patch(deployment, { spec: { replicas: 0 } }, { type: 'merge', signal })
      const options: Pick<StorageOptions, 'clock'> = { clock }
      await waitFor(options, { step: STEP, signal, missing: () => running(signal) })
    },
  }
}

/** The way back: one that was stopped, of an older version. */
export async function startOperator({ client, operator, version }: StartOperatorInput, signal: AbortSignal): Promise<boolean> {
  const isOlder = operator !== undefined && !workloadImage(operator).endsWith(`:${version}`)
  if (!isOlder || fieldsOf(operator['spec'])['replicas'] !== 0) return false
  await client.patch(namedOf(operator), { spec: { replicas: 1 } }, { type: 'merge', signal })
  return true
}

export interface StartOperatorInput {
  readonly client: Pick<ApiClient, 'patch'>
  /** its Deployment, where there is one */
  readonly operator: ApiObject | undefined
  /** "3.31.5" */
  readonly version: string
}

/** None is asked for, and none is left. */
function isStopped({ spec, status, metadata }: ApiObject): boolean {
  const { replicas: left = 0, observedGeneration } = fieldsOf(status)
  return fieldsOf(spec)['replicas'] === 0 && left === 0 && observedGeneration === metadata.generation
}
