// SPDX-License-Identifier: Apache-2.0
/** Variables of a container: those said in words, and those that stand elsewhere. Layer: upgrade (pure). */
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import type { UpgradeFacts } from './facts.ts'
import { objectsOf } from './objects.ts'

export interface ContainerEnvironment {
  readonly words: Readonly<Record<string, string>>
  /** by variable, where its value stands: "ConfigMap netplane-config, key veth_mtu" */
  readonly elsewhere: ReadonlyMap<string, string>
  /** words, and what config maps among the facts say */
  readonly values: Readonly<Record<string, string>>
}

interface Place {
  readonly facts: UpgradeFacts
  /** of the pods */
  readonly namespace: string
}

/** Of a variable that stands twice the last one counts, as for the kubelet. */
export function readEnvironment(container: Readonly<Record<string, unknown>>, place: Place): ContainerEnvironment {
  const variables = [...fromMaps(container, place), ...objectsIn(container['env']).map((variable) => variableOf(variable, place))]
  const last = new Map(variables.map((variable) => [variable.name, variable]))
  const entries = [...last.values()]
  return {
    words: Object.fromEntries(entries.flatMap(({ name, value, place: where }) => (where === undefined ? [[name, value ?? '']] : []))),
    elsewhere: new Map(entries.flatMap(({ name, place: where }) => (where === undefined ? [] : [[name, where]]))),
    values: Object.fromEntries(entries.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]))),
  }
}

interface Variable {
  readonly name: string
  /** undefined: it is not among the facts */
  readonly value: string | undefined
  /** undefined: it has a value of its own */
  readonly place: string | undefined
}

function fromMaps(container: Readonly<Record<string, unknown>>, place: Place): readonly Variable[] {
  return objectsIn(container['envFrom']).flatMap(({ prefix, configMapRef }) => {
    const map = textOf(fieldsOf(configMapRef)['name'])
    const data = Object.entries(configMap(map, place))
    return data.map(([key, value]) => ({ name: textOf(prefix) + key, value: textOf(value), place: `ConfigMap ${map}, key ${key}` }))
  })
}

function variableOf({ name, value, valueFrom }: Readonly<Record<string, unknown>>, place: Place): Variable {
  const source = sourceOf(fieldsOf(valueFrom), place)
  return { name: textOf(name), ...(source ?? { value: textOf(value), place: undefined }) }
}

function sourceOf(valueFrom: Readonly<Record<string, unknown>>, place: Place): Omit<Variable, 'name'> | undefined {
  const [[kind, reference] = []] = Object.entries(valueFrom)
  if (kind === undefined) return undefined
  const { name, key, fieldPath, resource } = fieldsOf(reference)
  if (kind === 'configMapKeyRef') {
    const value = configMap(textOf(name), place)[textOf(key)]
    return { place: `ConfigMap ${textOf(name)}, key ${textOf(key)}`, value: typeof value === 'string' ? value : undefined }
  }
  if (kind === 'secretKeyRef') return { place: `Secret ${textOf(name)}, key ${textOf(key)}`, value: undefined }
  return { place: `field ${textOf(fieldPath) || textOf(resource)}`, value: undefined }
}

/** Its data; empty where it is not among the facts. */
function configMap(wanted: string, { facts, namespace }: Place): Readonly<Record<string, unknown>> {
  const found = objectsOf(facts, '', 'ConfigMap').find(({ metadata }) => metadata.name === wanted && metadata.namespace === namespace)
  return fieldsOf(found?.['data'])
}
