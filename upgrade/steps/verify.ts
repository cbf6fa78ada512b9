// SPDX-License-Identifier: Apache-2.0
/** That the cluster is of this version: what it says of itself, what its nodes run, and its pods' readings.
 * Layer: upgrade. */
import type { ApiClient } from '#lib/api/client.ts'
import type { Clock } from '#lib/base/clock.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { agentPods, clusterInformation, runningVersions } from '#lib/control/cluster-version.ts'
import type { Step } from './step.ts'

export interface VerifyInput {
  readonly client: ApiClient
  readonly clock: Clock
  /** "3.31.5" */
  readonly version: string
  /** for the controllers to write the cluster's version */
  readonly timeoutMs: number
}

const LOOK_MS = 1000

export function verifyOf({ client, clock, version, timeoutMs }: VerifyInput): Pick<Step, 'look' | 'run'> {
  const left = (): Promise<readonly string[]> => differences(client, version)
  return {
    look: async () => {
      const texts = await left()
      return { isDone: texts.length === 0, problems: [], left: texts }
    },
    run: async (signal, tell) => {
      const end = clock.now() + timeoutMs
      for (let told = ''; clock.now() < end; await clock.sleep(LOOK_MS, signal)) {
        const [first] = await left()
        if (first === undefined) return
        if (first !== told) tell(first)
        told = first
      }
    },
  }
}

async function differences(client: ApiClient, version: string): Promise<readonly string[]> {
  const wanted = `v${version}`
  const [information, versions, readings] = await Promise.all([clusterInformation(client), runningVersions(client), notReady(client)])
  const says = information?.netplaneVersion ?? 'nothing'
  return [
    ...versions.filter((one) => one.version !== wanted).map((one) => `${one.nodes} nodes run ${one.version}, and not ${wanted}`),
    ...readings,
    ...(information?.datastoreReady === false ? ['the datastore is locked: datastoreReady of ClusterInformation default is false'] : []),
    ...(says === wanted ? [] : [`ClusterInformation default says ${says}, and not ${wanted}`]),
  ]
}

/** "pod netplane-node-x7 of node a is 1/2 ready: datastore waits". An agent that serves beside a container that waits
 * has a locked datastore. */
async function notReady(client: ApiClient): Promise<readonly string[]> {
  return (await agentPods(client)).flatMap(({ metadata, spec, status }) => {
    const containers = objectsIn(fieldsOf(status)['containerStatuses'])
    const waiting = containers.filter(({ ready }) => ready !== true).map(({ name }) => textOf(name))
    const all = objectsIn(fieldsOf(spec)['containers']).length
    if (waiting.length === 0 && containers.length === all) return []
    const reading = `${containers.length - waiting.length}/${all} ready`
    return [`pod ${metadata.name} of node ${textOf(fieldsOf(spec)['nodeName'])} is ${reading}: ${waiting.join(', ') || 'it has not begun'}`]
  })
}
