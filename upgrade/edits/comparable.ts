// SPDX-License-Identifier: Apache-2.0
/** Objects in the one form in which two of them are compared: without what a server adds, lists by the keys of their
 * elements. Layer: upgrade (pure).
 *
 * Steps of a path are names of fields, and "[key]" for an element of a list. */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, isObject, textOf } from '#lib/base/object.ts'
import type { Raw } from '../stored/outcome.ts'
import { clientMetadata, saysNothing, withoutImpliedRequests } from './defaults.ts'
import { repositoryOf } from './image.ts'

/** By what an element of a list is known. */
const KEYS: Readonly<Record<string, (element: Raw) => string>> = {
  containers: nameOf,
  initContainers: nameOf,
  env: nameOf,
  volumes: nameOf,
  imagePullSecrets: nameOf,
  volumeMounts: ({ mountPath }) => textOf(mountPath),
  ports: ({ containerPort, port, protocol = 'TCP' }) => `${String(containerPort ?? port)}/${textOf(protocol)}`,
  envFrom: ({ configMapRef, secretRef }) => textOf(fieldsOf(configMapRef ?? secretRef)['name']),
  hostAliases: ({ ip }) => textOf(ip),
  subjects: ({ kind, namespace, name }) => [kind, namespace, name].map(textOf).join('/'),
  ownerReferences: ({ kind, name }) => `${textOf(kind)}/${textOf(name)}`,
  // as kubectl writes a taint
  tolerations: ({ key, value, effect }) => `${textOf(key)}${value === undefined ? '' : `=${textOf(value)}`}:${textOf(effect)}`,
  plugins: ({ type }) => textOf(type),
}

function nameOf({ name }: Raw): string {
  return textOf(name)
}

const CNI_KEY = 'cni_network_config'

/** Their keys are no names of fields: no default is known of them. */
const TEXTS: ReadonlySet<string> = new Set(['labels', 'matchLabels', 'nodeSelector', 'data'])

export function comparable(object: ApiObject): Raw {
  const { kind, metadata } = object
  const rest = Object.fromEntries(Object.entries(object).filter(([key]) => key !== 'kind' && key !== 'apiVersion'))
  const own = { ...rest, metadata: clientMetadata(metadata) }
  return fieldsOf(normalised(kind === 'ServiceAccount' ? withoutServersSecrets(own, metadata.name) : own, ''))
}

/** OpenShift gives accounts secrets for its own registry. */
function withoutServersSecrets(account: Raw, name: string): Raw {
  const { imagePullSecrets } = account
  if (!Array.isArray(imagePullSecrets)) return account
  const own = imagePullSecrets.filter((secret: unknown) => !textOf(fieldsOf(secret)['name']).startsWith(`${name}-dockercfg-`))
  return { ...account, imagePullSecrets: own }
}

function normalised(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return listed(value, name)
  if (name === 'image' && typeof value === 'string') return repositoryOf(value)
  if (!isObject(value)) return value
  if (TEXTS.has(name)) return { ...value, ...(name === 'data' && CNI_KEY in value ? { [CNI_KEY]: cniList(value[CNI_KEY]) } : {}) }
  const fields = name === 'resources' ? withoutImpliedRequests(value) : name === 'template' ? templateOf(value) : value
  const entries = Object.entries(fields).flatMap(([key, part]): readonly [string, unknown][] => {
    if (saysNothing([key, part], fields, name)) return []
    const made = normalised(part, key)
    return isEmpty(made) ? [] : [[key, made]]
  })
  return Object.fromEntries(entries)
}

function templateOf(template: Raw): Raw {
  return { ...template, metadata: clientMetadata(fieldsOf(template['metadata'])) }
}

function listed(list: readonly unknown[], name: string): unknown {
  if (name === 'args' && list.every(isFlag)) return Object.fromEntries(list.map((flag) => [`[${flag.replace(/=.*$/s, '')}]`, flag]))
  const keyOf = KEYS[name]
  if (keyOf === undefined) return list.map((element) => normalised(element, ''))
  const entries = list.map((element, at): readonly [string, unknown] => {
    const key = keyOf(fieldsOf(element))
    return [`[${key === '' ? at : key}]`, name === 'env' ? variable(fieldsOf(element)) : normalised(element, '')]
  })
  return Object.fromEntries(entries)
}

function isFlag(element: unknown): element is string {
  return typeof element === 'string' && element.startsWith('--')
}

/** Its text, or where it is from. */
function variable({ value = '', valueFrom }: Raw): unknown {
  return valueFrom === undefined ? value : normalised(valueFrom, '')
}

/** With placeholders as texts; the text itself where it is no list of plugins. */
function cniList(text: unknown): unknown {
  try {
    const list: unknown = JSON.parse(textOf(text).replaceAll(/(:\s*)(__[A-Z0-9_]+__)/g, '$1"$2"'))
    return isObject(list) ? { ...list, plugins: listed(Array.isArray(list['plugins']) ? list['plugins'] : [], 'plugins') } : text
  } catch {
    return text
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** "spec.template.spec.containers[netplane-node].env[FELIX_LOGSEVERITYSCREEN]" */
export function stepsText(steps: readonly string[]): string {
  return steps.map((step, at) => (at === 0 || step.startsWith('[') ? step : `.${step}`)).join('')
}
