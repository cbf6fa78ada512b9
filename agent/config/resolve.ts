// SPDX-License-Identifier: Apache-2.0
/** FelixConfiguration objects → the configuration in force on this node, and what of them is not obeyed. Layer: agent/config (pure).
 *
 * "node.<name>" goes before "default", field by field. A field that cannot be used keeps its last good value; failing that, what the other
 * object says, or the default. */
import { isObject } from '#lib/base/object.ts'
import { compareText } from '#lib/base/order.ts'
import type { Rejected } from '#lib/base/result.ts'
import { same } from '#lib/base/same.ts'
import type { FelixConfiguration, Json } from '#lib/model/felix-configuration.ts'
import { refText } from '#lib/model/ref.ts'
import { assemble } from './config.ts'
import type { Config } from './config.ts'
import { allFields } from './schema.ts'
import type { Field } from './schema.ts'
import { unimplemented } from './unimplemented.ts'

export interface Resolved {
  readonly config: Config
  /** fields that are not obeyed, with why, in the order of objects and fields */
  readonly rejected: readonly Rejected[]
  /** fields whose new value waits for the agent's next start, sorted */
  readonly waiting: readonly string[]
  /** by field, as written: what is in force, for the next time */
  readonly inForce: ReadonlyMap<string, Json>
}

/** What applies to this node. */
export function configurationsOf(all: ReadonlyMap<string, FelixConfiguration>, node: string): readonly FelixConfiguration[] {
  return [`node.${node}`, 'default'].flatMap((name) => all.get(name) ?? [])
}

/** `objects` in order of precedence; `previous` is what came out the last time, undefined at the start. */
export function resolveConfig(objects: readonly FelixConfiguration[], previous: Resolved | undefined): Resolved {
  const rejected = objects.flatMap(unknownFields)
  const waiting: string[] = []
  const inForce = new Map<string, Json>()
  const read = <T>(field: Field<T>): T => {
    const wanted = choose(field, objects, previous?.inForce.get(field.name))
    rejected.push(...wanted.rejected)
    const stays = previous !== undefined && field.change === 'restart'
    if (stays && !same(wanted.raw, previous.inForce.get(field.name))) waiting.push(field.name)
    const raw = stays ? previous.inForce.get(field.name) : wanted.raw
    if (raw === undefined) return field.fallback
    inForce.set(field.name, raw)
    const outcome = field.parser.parse(raw)
    return outcome.kind === 'ok' ? outcome.value : field.fallback
  }
  const config = assemble(read)
  const precedence = new Map(objects.map((object, at) => [refText(object), at]))
  rejected.sort((a, b) => (precedence.get(a.ref) ?? 0) - (precedence.get(b.ref) ?? 0) || compareText(a.path, b.path))
  return { config, rejected, waiting: waiting.sort(), inForce }
}

/** The first object that has the field decides, unless what it says cannot be used. Undefined: the default. */
function choose<T>(
  field: Field<T>,
  objects: readonly FelixConfiguration[],
  lastGood: Json | undefined,
): { readonly raw: Json | undefined; readonly rejected: readonly Rejected[] } {
  const rejected: Rejected[] = []
  const usable: { readonly raw: Json; readonly first: boolean }[] = []
  for (const object of objects) {
    const raw = written(object, field.name)
    if (raw === undefined) continue
    const outcome = field.parser.parse(raw)
    if (outcome.kind === 'ok') usable.push({ raw, first: rejected.length === 0 })
    else rejected.push({ ref: refText(object), path: `spec.${field.name}`, reason: outcome.reason })
  }
  const [best] = usable
  if (best?.first === true || rejected.length === 0) return { raw: best?.raw, rejected }
  return { raw: lastGood ?? best?.raw, rejected }
}

function written(object: FelixConfiguration, name: string): Json | undefined {
  let value: Json | undefined = object.spec
  for (const step of name.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value ?? undefined
}

/** Objects among the fields: "bpfConntrackTimeouts". */
const groups = new Set(allFields.filter(({ name }) => name.includes('.')).map(({ name }) => name.slice(0, name.indexOf('.'))))
const known = new Set(allFields.map(({ name }) => name))

function unknownFields(object: FelixConfiguration): readonly Rejected[] {
  const ref = refText(object)
  const refuse = (name: string): Rejected[] => {
    if (known.has(name)) return []
    return [{ ref, path: `spec.${name}`, reason: unimplemented.get(name)?.reason ?? 'there is no such field' }]
  }
  return Object.entries(object.spec).flatMap(([name, value]) => {
    if (!groups.has(name)) return refuse(name)
    if (!isObject(value)) return [{ ref, path: `spec.${name}`, reason: 'must be an object' }]
    return Object.keys(value).flatMap((part) => refuse(`${name}.${part}`))
  })
}
