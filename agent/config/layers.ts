// SPDX-License-Identifier: Apache-2.0
/** Where settings come from, in the order of their precedence: environment, file, the node's own object, the
 * cluster's. Layer: agent/config (pure). */
import { isObject } from '#lib/base/object.ts'
import type { FelixConfiguration, Json } from '#lib/model/felix-configuration.ts'
import { refText } from '#lib/model/ref.ts'
import { allFields } from './schema.ts'
import { unimplemented } from './unimplemented.ts'

export type Origin = 'environment' | 'file' | 'node' | 'default'

/** What one of them says. */
export interface ConfigLayer {
  readonly origin: Origin
  /** the name of the layer in messages about faults of it: "FelixConfiguration/default", "file /etc/netplane.yaml" */
  readonly ref: string
  readonly spec: Readonly<Record<string, Json>>
  /** where in it a field stands */
  readonly pathOf: (field: string) => string
}

export function layerFrom(object: FelixConfiguration): ConfigLayer {
  return {
    origin: object.name === 'default' ? 'default' : 'node',
    ref: refText(object),
    spec: object.spec,
    pathOf: (field) => `spec.${field}`,
  }
}

/** What objects say that applies to this node. */
export function configurationsOf(all: ReadonlyMap<string, FelixConfiguration>, node: string): readonly ConfigLayer[] {
  return objectsOf(all, node).map(layerFrom)
}

/** Of these objects, by their names, how often each was changed; manifests do not say. */
export function generationsOf(all: ReadonlyMap<string, FelixConfiguration>, node: string): Readonly<Record<string, number>> {
  return Object.fromEntries(objectsOf(all, node).flatMap(({ name, generation }) => (generation === undefined ? [] : [[name, generation]])))
}

function objectsOf(all: ReadonlyMap<string, FelixConfiguration>, node: string): readonly FelixConfiguration[] {
  return [`node.${node}`, 'default'].flatMap((name) => all.get(name) ?? [])
}

const PREFIX = 'FELIX_'

/** "bpfConntrackTimeouts.udpTimeout" → "FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT" */
export function variableOf(field: string): string {
  return PREFIX + field.replace('.', '_').toUpperCase()
}

/** Variables of the environment. Their texts become what the field's type has: numbers, true or false, lists by
 * commas or as JSON. */
export function layerFromEnvironment(environment: Readonly<Record<string, string | undefined>>): ConfigLayer {
  const types = new Map(allFields.map(({ name, parser }) => [variableOf(name), { name, type: parser.schema.type }]))
  for (const [name, { type }] of unimplemented) types.set(variableOf(name), { name, type })
  const spec: Record<string, Json> = {}
  const variables = new Map<string, string>()
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.toUpperCase().startsWith(PREFIX) || text === undefined) continue
    const { name, type } = types.get(variable.toUpperCase()) ?? { name: variable, type: undefined }
    variables.set(name, variable)
    put(spec, name, valueOf(text, type))
  }
  return { origin: 'environment', ref: 'environment', spec, pathOf: (field) => variables.get(field) ?? variableOf(field) }
}

/** The group's own object is replaced, never changed: another layer may hold it. */
function put(spec: Record<string, Json>, field: string, value: Json): void {
  const [group = '', part] = field.split('.')
  const before = spec[group]
  spec[group] = part === undefined ? value : { ...(isObject(before) ? before : {}), [part]: value }
}

function valueOf(text: string, type: string | undefined): Json {
  switch (type) {
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'integer':
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text
    case 'array':
      return text.trimStart().startsWith('[') ? parsed(text) : text.split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))
    default:
      return text
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
