// SPDX-License-Identifier: Apache-2.0
/** What is wrong with an object before any server is asked. Layer: cli (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import type { Rejected } from '#lib/base/result.ts'
import { ipBlockSpec } from '#lib/kube/objects/ip-block.ts'
import { FieldError, inside, text, type Raw } from '#lib/kube/parse/fields.ts'
import { identify, namesIn, parseObject } from '#lib/kube/parse/parse-object.ts'
import { IS_DEFAULT, type Resource } from '#lib/kube/resources.ts'
import { clusterInformationSpec } from '#lib/kube/schema/cluster-information.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { nameKey } from '#lib/model/ref.ts'
import { apiVersionOf, V3_RESOURCES } from './kinds.ts'

export interface Checked {
  /** undefined: it cannot even be named */
  readonly object: ApiObject | undefined
  readonly resource: Resource | undefined
  readonly rejected: readonly Rejected[]
  /** only parts of it are not obeyed: the server takes it */
  readonly inPart: boolean
}

/** Kinds that the agent's store does not hold. */
const OTHER_SPECS = {
  IPAMBlock: ipBlockSpec,
  ClusterInformation: clusterInformationSpec,
  ControllersConfiguration: controllersConfigurationSpec,
} as const

const PARTS = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status'])

export interface CheckOptions {
  /** of objects that do not say theirs */
  readonly namespace: string
  /** the names alone: it is to be read or deleted */
  readonly namesOnly: boolean
}

/** Any JSON. */
export function checkObject(value: unknown, { namespace, namesOnly }: CheckOptions): Checked {
  try {
    const { object, resource } = named(value, namespace)
    const ref = refOf(object)
    const { rejected, inPart } = namesOnly ? NOTHING : specProblems(object, resource)
    return { object, resource, rejected: rejected.map((one) => ({ ...one, ref })), inPart }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    const rejected = { ref: guessedRef(value), path: thrown.path, reason: thrown.reason }
    return { object: undefined, resource: undefined, rejected: [rejected], inPart: false }
  }
}

/** "NetworkPolicy/shop/db" */
export function refOf({ kind, metadata: { namespace = '', name } }: ApiObject): string {
  return `${kind}/${nameKey({ namespace, name })}`
}

/** With its namespace, and without what only a server says. */
function named(value: unknown, namespace: string): { readonly object: ApiObject; readonly resource: Resource } {
  if (!isObject(value)) throw new FieldError('', 'must be an object')
  const [kind, apiVersion] = [text(value, 'kind'), text(value, 'apiVersion')]
  if (kind === undefined) throw new FieldError('kind', 'is missing')
  if (apiVersion === undefined) throw new FieldError('apiVersion', 'is missing')
  const resource = V3_RESOURCES.find((one) => one.kind === kind && apiVersion.startsWith(`${one.group}/`))
  if (resource === undefined) throw new FieldError('kind', `there is no such kind of netplane.io/v3: ${kind} of ${apiVersion}`)
  if (apiVersion !== apiVersionOf(resource)) throw new FieldError('apiVersion', `must be ${apiVersionOf(resource)}`)
  const names = namesIn(value)
  if (!resource.namespaced && names.namespace !== undefined) throw new FieldError('metadata.namespace', `a ${kind} has none`)
  mustBeTexts(value)
  const place = resource.namespaced ? { namespace: names.namespace ?? namespace } : {}
  const rest = Object.fromEntries(Object.entries(value).filter(([part]) => part !== 'status'))
  return { object: { ...rest, apiVersion, kind, metadata: { ...metadataOf(value), ...place, name: names.name } }, resource }
}

/** A YAML that has `zone: 1` means the text, and a server does not take the number. */
function mustBeTexts(raw: Raw): void {
  inside(raw, 'metadata', (metadata) => {
    for (const part of ['labels', 'annotations'])
      inside(metadata, part, (texts) => {
        const wrong = Object.keys(texts).find((key) => typeof texts[key] !== 'string')
        if (wrong !== undefined) throw new FieldError(`['${wrong}']`, 'must be text')
      })
  })
}

function metadataOf({ metadata }: Raw): Raw {
  return isObject(metadata) ? metadata : {}
}

const NOTHING = { rejected: [], inPart: false } as const

function specProblems(object: ApiObject, { conditions }: Resource): Pick<Checked, 'rejected' | 'inPart'> {
  const unknown = Object.keys(object).find((key) => !PARTS.has(key))
  if (unknown !== undefined) throw new FieldError(unknown, 'there is no such field')
  if (conditions.includes(IS_DEFAULT) && object.metadata.name !== 'default') throw new FieldError('metadata.name', 'must be default')
  const other = Object.entries(OTHER_SPECS).find(([kind]) => kind === object.kind)?.[1]
  if (other !== undefined) {
    inside(object, 'spec', (spec): unknown => other.read(spec))
    return NOTHING
  }
  const identified = identify(object)
  if (identified.kind === 'foreign') return NOTHING
  if (identified.kind === 'rejected') return { rejected: [identified.rejected], inPart: false }
  const parsed = parseObject(object, identified.ref)
  if (parsed.kind === 'rejected') return { rejected: parsed.rejected, inPart: false }
  const { value, rejected } = parsed
  if (value.kind !== 'FelixConfiguration') return { rejected, inPart: true }
  return { rejected: resolveConfig([layerFrom(value)], undefined).rejected, inPart: false }
}

/** As much of its name as it says. */
export function guessedRef(value: unknown): string {
  if (!isObject(value) || typeof value['kind'] !== 'string') return ''
  const { namespace, name } = metadataOf(value)
  return typeof name === 'string'
    ? `${value['kind']}/${nameKey({ namespace: typeof namespace === 'string' ? namespace : '', name })}`
    : value['kind']
}
