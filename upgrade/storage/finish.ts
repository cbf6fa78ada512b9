// SPDX-License-Identifier: Apache-2.0
/** `finish`: what was stored goes, with its definitions, once every node runs this version. Layer: upgrade. */
import { getOrNone, isAbsent, listOrNone } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf, type ApiObject, type Collection } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { readinessOf } from '#lib/kube/objects/cluster-information.ts'
import { NODE } from '#lib/render/input.ts'
import { ourReferences } from '../owners/references.ts'
import { dependentText, scanOwners } from '../owners/scan.ts'
import type { Step } from '../steps/step.ts'
import { STORED_API_VERSION } from '../stored/outcome.ts'
import { removePolicy, storedPolicy, waitForWrites } from './admission.ts'
import { forgetService } from './api-service.ts'
import { isImported } from './cluster-information.ts'
import { waitFor, type StorageOptions } from './options.ts'

const STEP = 'finish'
const AT_ONCE = 8
const DEFINITIONS: Collection = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
const GROUP = STORED_API_VERSION.split('/')[0] ?? ''

export function finishStep(options: StorageOptions): Step {
  const { client, version } = options
  return {
    name: STEP,
    about: `deletes all objects of ${GROUP}, and their definitions: there is no backup of what was stored any more`,
    commands: [`kubectl delete crd $(kubectl get crd -o name | grep '\\.${GROUP}$')`],
    look: async (signal) => {
      const [definitions, policies] = [await storedDefinitions(options, signal), storedPolicy(version)]
      const left = await mapLimited(policies, AT_ONCE, (policy) => getOrNone(client, namedOf(policy), { signal }))
      if (definitions.length === 0 && left.every((one) => one === undefined)) return { isDone: true, problems: [] }
      return { isDone: false, problems: await inTheWay(options, signal) }
    },
    run: async (signal, tell) => {
      await removePolicy(options, signal)
      await waitForWrites(options, signal)
      await deleteStored(options, signal)
      await forgetService(options, signal)
      tell(`nothing of ${GROUP} is left`)
    },
  }
}

async function storedDefinitions({ client }: StorageOptions, signal: AbortSignal): Promise<readonly ApiObject[]> {
  return (await client.list(DEFINITIONS, { signal })).filter(({ spec }) => fieldsOf(spec)['group'] === GROUP)
}

async function inTheWay(options: StorageOptions, signal: AbortSignal): Promise<readonly string[]> {
  const { client } = options
  const { dependents, problems } = await scanOwners(client)
  const owned = dependents.filter(({ object }) => ourReferences(object).some(({ apiVersion }) => apiVersion === STORED_API_VERSION))
  return [
    ...((await isImported(client, signal)) ? [] : ['what is stored is not imported yet']),
    ...(await nodesInTheWay(options, signal)),
    ...problems,
    ...owned.map((dependent) => `${dependentText(dependent)}: its owner is of ${GROUP}, and would take it along`),
  ]
}

/** Agents before this version still read what is stored. */
async function nodesInTheWay(
  { client, namespace, daemonSet = NODE, version }: StorageOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const set = await getOrNone(client, { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name: daemonSet }, { signal })
  const text = `DaemonSet ${namespace}/${daemonSet}`
  if (set === undefined) return [`${text} is not there`]
  const pod = fieldsOf(fieldsOf(fieldsOf(set['spec'])['template'])['spec'])
  const image = textOf(objectsIn(pod['containers']).find(({ name }) => name === NODE)?.['image'])
  const readiness = readinessOf(set)
  if (!image.replace(/@.*$/, '').replace(/:v/, ':').endsWith(`:${version}`))
    return [`${text} has the image ${image}, which is not v${version}`]
  if (readiness === undefined) return [`${text}: its pods are not counted yet`]
  const { nodes, ready, updated } = readiness
  return ready === nodes && updated === nodes ? [] : [`v${version} runs on ${Math.min(ready, updated)} of ${nodes} nodes`]
}

/** An object with a finalizer would stay, as no controller of its kind runs any more. */
async function deleteStored(options: StorageOptions, signal: AbortSignal): Promise<void> {
  const missing = async (): Promise<string | undefined> => {
    const left = await storedDefinitions(options, signal)
    await mapLimited(left, AT_ONCE, (definition) => deleteDefinition(options, definition, signal))
    return left.length === 0 ? undefined : `${left.map(({ metadata }) => metadata.name).join(', ')}: still there`
  }
  await waitFor(options, { step: STEP, signal, missing })
}

async function deleteDefinition({ client }: StorageOptions, definition: ApiObject, signal: AbortSignal): Promise<void> {
  const { plural, kind } = fieldsOf(fieldsOf(definition['spec'])['names'])
  const objects = await listOrNone(client, { apiVersion: STORED_API_VERSION, kind: textOf(kind), plural: textOf(plural) }, { signal })
  const held = objects.filter(({ metadata }) => Array.isArray(metadata['finalizers']))
  await mapLimited(held, AT_ONCE, async (object) => {
    try {
      await client.patch({ ...namedOf(object), plural: textOf(plural) }, { metadata: { finalizers: null } }, { type: 'merge', signal })
    } catch (thrown) {
      if (!isAbsent(thrown)) throw thrown
    }
  })
  try {
    if (definition.metadata.deletionTimestamp === undefined) await client.delete(namedOf(definition), { signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
  }
}
