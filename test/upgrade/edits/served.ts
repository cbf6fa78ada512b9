// SPDX-License-Identifier: Apache-2.0
/** Older installations as an API server has them, with edits. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import { comparable } from '#upgrade/edits/comparable.ts'
import { CLIENT_SIDE_APPLY } from '#upgrade/edits/managers.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { OLD_VARIANTS, type OldVariant } from '#upgrade/found/found.ts'

export const VERSIONS = ['3.15.5', '3.20.6', '3.27.5', '3.29.2', '3.30.0', '3.31.4'] as const

export const EVERY = VERSIONS.flatMap((version) => OLD_VARIANTS.map((variant) => [version, variant] as const))

type Fields = Record<string, unknown>

/** A copy that may be written to. */
export function copyOf(object: unknown): Fields {
  return JSON.parse(JSON.stringify(object)) as Fields
}

/** With what kube-apiserver and kubectl add: `applied` by kubectl as a whole. */
export function served(object: ApiObject): ApiObject {
  const copy = copyOf(object)
  const spec = fieldsOf(copy['spec'])
  addDefaults(copy['kind'], spec)
  const steps = leavesOf(comparable(object))
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(object) }
  return asApiObject({
    ...copy,
    ...('spec' in copy ? { spec, status: { observedGeneration: 1 } } : {}),
    metadata: {
      ...fieldsOf(copy['metadata']),
      ...{ uid: '51fdcd2c-eb0b-40c8-834c-8986d0bdd420', resourceVersion: '7', generation: 2, creationTimestamp: '2021-05-01T00:00:00Z' },
      annotations: object.kind === 'Deployment' ? { ...annotations, 'deployment.kubernetes.io/revision': '1' } : annotations,
      managedFields: [
        ...steps.map((one) => ({ manager: CLIENT_SIDE_APPLY, operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: ownedBy(one) })),
        { manager: 'kube-controller-manager', operation: 'Update', subresource: 'status', fieldsV1: { 'f:status': {} } },
      ],
    },
  })
}

function addDefaults(kind: unknown, spec: Fields): void {
  if (kind === 'Service')
    Object.assign(spec, { type: 'ClusterIP', clusterIP: '10.96.0.9', clusterIPs: ['10.96.0.9'], sessionAffinity: 'None' })
  if (kind === 'DaemonSet') spec['revisionHistoryLimit'] = 10
  if (kind === 'Deployment') spec['progressDeadlineSeconds'] = 600
  const pod = fieldsOf(fieldsOf(spec['template'])['spec']) as Fields
  if (Object.keys(pod).length === 0) return
  const given = { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always', schedulerName: 'default-scheduler', securityContext: {} }
  Object.assign(pod, { ...given, ...pod, serviceAccount: pod['serviceAccountName'] })
  for (const container of [...objectsIn(pod['containers']), ...objectsIn(pod['initContainers'])] as Fields[]) {
    const usual = { imagePullPolicy: 'IfNotPresent', terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' }
    Object.assign(container, { resources: {}, ...usual, ...container })
    for (const probe of ['livenessProbe', 'readinessProbe'])
      if (isObject(container[probe]))
        container[probe] = { timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3, ...container[probe] }
    for (const port of objectsIn(container['ports']) as Fields[]) port['hostPort'] = port['containerPort']
    for (const variable of objectsIn(container['env']) as Fields[]) {
      if (variable['value'] === '') delete variable['value']
      const reference = fieldsOf(fieldsOf(variable['valueFrom'])['fieldRef']) as Fields
      if ('fieldPath' in reference) reference['apiVersion'] = 'v1'
    }
  }
  for (const volume of objectsIn(pod['volumes']) as Fields[]) {
    if (isObject(volume['hostPath'])) volume['hostPath'] = { type: '', ...volume['hostPath'] }
    if (isObject(volume['configMap'])) volume['configMap'] = { defaultMode: 420, ...volume['configMap'] }
  }
}

export type Steps = readonly string[]

export function leavesOf(value: unknown, steps: Steps = []): readonly Steps[] {
  return isObject(value) && steps.at(-2) !== 'env'
    ? Object.entries(value).flatMap(([key, part]) => leavesOf(part, [...steps, key]))
    : [steps]
}

/** What managedFields say of a field. Lists whose elements have no names there are owned as a whole. */
function ownedBy(steps: Steps): object {
  const [step = '', ...rest] = steps
  const isAtomic = ['tolerations', 'subjects', 'envFrom', 'cni_network_config', 'args'].includes(step)
  const inner = rest.length === 0 || isAtomic ? {} : ownedBy(rest)
  const isElement = step.startsWith('[')
  const variable = isElement && rest.length === 0 ? { 'f:name': {}, 'f:value': {} } : inner
  return isElement ? { [`k:${JSON.stringify(keyOf(step.slice(1, -1)))}`]: variable } : { [`f:${step}`]: inner }
}

function keyOf(text: string): object {
  const [, port, protocol] = /^(\d+)\/(TCP|UDP)$/.exec(text) ?? []
  return port === undefined ? (text.startsWith('/') ? { mountPath: text } : { name: text }) : { containerPort: Number(port), protocol }
}

export interface Change {
  /** "DaemonSet netplane-node" */
  readonly resource: string
  readonly steps: Steps
  /** undefined: it is taken away. Of an element of a list: with its key */
  readonly value: unknown
  readonly manager?: string
}

/** The objects of an installation, untouched but for the changes. */
export function installation(version: string, variant: OldVariant, changes: readonly Change[] = []): readonly ApiObject[] {
  return installed(pristineManifest(version, variant), changes)
}

/** Of any manifest. */
export function installed(manifest: readonly ApiObject[], changes: readonly Change[] = []): readonly ApiObject[] {
  return changes.reduce(withChange, manifest.map(served))
}

function withChange(objects: readonly ApiObject[], { resource, steps, value, manager }: Change): readonly ApiObject[] {
  return objects.map((object) => {
    if (`${object.kind} ${object.metadata.name}` !== resource) return object
    const copy = copyOf(object)
    put(copy, steps, value)
    const metadata = copy['metadata'] as Fields
    if (manager !== undefined)
      metadata['managedFields'] = [
        ...objectsIn(metadata['managedFields']).filter(({ fieldsV1 }) => JSON.stringify(fieldsV1) !== JSON.stringify(ownedBy(steps))),
        { manager, operation: 'Update', fieldsV1: ownedBy(steps) },
      ]
    return asApiObject(copy)
  })
}

function put(fields: Fields, [step = '', ...rest]: Steps, value: unknown): void {
  const [next = ''] = rest
  if (rest.length === 0) {
    if (value === undefined) Reflect.deleteProperty(fields, step)
    else fields[step] = value
  } else if (next.startsWith('[')) {
    fields[step] = withElement(objectsIn(fields[step]).map(copyOf), rest, value)
  } else {
    fields[step] ??= {}
    put(fields[step] as Fields, rest, value)
  }
}

function withElement(list: Fields[], [step = '', ...rest]: Steps, value: unknown): readonly Fields[] {
  const key = step.slice(1, -1)
  const isIt = ({ name, mountPath, key: tolerated, effect, type }: Fields): boolean =>
    [name, mountPath, type, `${textOf(tolerated)}:${textOf(effect)}`].includes(key)
  const at = list.findIndex(isIt)
  if (rest.length === 0) {
    if (value === undefined) return list.filter((element) => !isIt(element))
    return at < 0 ? [...list, value as Fields] : list.with(at, value as Fields)
  }
  const element = at < 0 ? { name: key } : (list[at] ?? {})
  put(element, rest, value)
  return at < 0 ? [...list, element] : list.with(at, element)
}

const POD: Steps = ['spec', 'template', 'spec']
const AGENTS: Steps = [...POD, 'containers', '[netplane-node]']

export function ofPods(...steps: Steps): Steps {
  return [...POD, ...steps]
}

export function ofAgents(...steps: Steps): Steps {
  return [...AGENTS, ...steps]
}

/** A variable of the agents' container. */
export function variable(name: string, value: unknown, manager = 'kubectl-set'): Change {
  const element = typeof value === 'string' ? { name, value } : value === undefined ? undefined : { name, valueFrom: value }
  return { resource: 'DaemonSet netplane-node', steps: ofAgents('env', `[${name}]`), value: element, manager }
}
