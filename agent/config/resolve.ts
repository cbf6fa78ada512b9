// SPDX-License-Identifier: Apache-2.0
/** What environment, file and FelixConfiguration objects say → the configuration in force on this node, and what of it
 * is not obeyed. Layer: agent/config (pure).
 *
 * The first layer that has a field decides. A field that cannot be used keeps its last good value; failing that, the
 * value of the next layer, or the default. */
import { isObject } from '#lib/base/object.ts'
import { compareText } from '#lib/base/order.ts'
import type { Rejected } from '#lib/base/result.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Json } from '#lib/model/felix-configuration.ts'
import { assemble } from './config.ts'
import type { Config } from './config.ts'
import type { Origin, ConfigLayer } from './layers.ts'
import { allFields } from './schema.ts'
import type { Field } from './schema.ts'
import { unimplemented } from './unimplemented.ts'

export interface Resolved {
  readonly config: Config
  /** fields that are not obeyed, with why, in the order of objects and fields */
  readonly rejected: readonly Rejected[]
  /** fields whose new value waits for the agent's next start, sorted */
  readonly waiting: readonly string[]
  /** by field; the default where it has none */
  readonly inForce: ReadonlyMap<string, InForce>
}

/** A value in force. */
export interface InForce {
  /** as written */
  readonly raw: Json
  /** the layer that set it; last good: the present value cannot be used */
  readonly origin: Origin | 'last good'
}

/** `said` in order of precedence; `previous` is what came out the last time, undefined at the start. */
export function resolveConfig(said: readonly ConfigLayer[], previous: Resolved | undefined): Resolved {
  const rejected = said.flatMap(unknownFields)
  const waiting: string[] = []
  const inForce = new Map<string, InForce>()
  const read = <T>(field: Field<T>): T => {
    const before = previous?.inForce.get(field.name)
    const wanted = choose(field, said, before)
    rejected.push(...wanted.rejected)
    const stays = previous !== undefined && field.change === 'restart'
    if (stays && !deepEqual(wanted.inForce?.raw, before?.raw)) waiting.push(field.name)
    const now = stays ? before : wanted.inForce
    if (now === undefined) return field.fallback
    inForce.set(field.name, now)
    const outcome = field.parser.parse(now.raw)
    return outcome.kind === 'ok' ? outcome.value : field.fallback
  }
  const config = assemble(read)
  const precedence = new Map(said.map(({ ref }, at) => [ref, at]))
  rejected.sort((a, b) => (precedence.get(a.ref) ?? 0) - (precedence.get(b.ref) ?? 0) || compareText(a.path, b.path))
  return { config, rejected, waiting: waiting.sort(), inForce }
}

/** The first that has the field decides, unless what it says cannot be used. Undefined: the default. */
function choose<T>(
  field: Field<T>,
  all: readonly ConfigLayer[],
  lastGood: InForce | undefined,
): { readonly inForce: InForce | undefined; readonly rejected: readonly Rejected[] } {
  const rejected: Rejected[] = []
  const usable: { readonly inForce: InForce; readonly first: boolean }[] = []
  for (const { spec, ref, pathOf, origin } of all) {
    const raw = written(spec, field.name)
    if (raw === undefined) continue
    const outcome = field.parser.parse(raw)
    if (outcome.kind === 'ok') usable.push({ inForce: { raw, origin }, first: rejected.length === 0 })
    else rejected.push({ ref, path: pathOf(field.name), reason: outcome.reason })
  }
  const [best] = usable
  if (best?.first === true || rejected.length === 0) return { inForce: best?.inForce, rejected }
  return { inForce: lastGood === undefined ? best?.inForce : { ...lastGood, origin: 'last good' }, rejected }
}

function written(spec: ConfigLayer['spec'], name: string): Json | undefined {
  let value: Json | undefined = spec
  for (const step of name.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value ?? undefined
}

/** Objects among the fields: "bpfConntrackTimeouts". */
const groups = new Set(allFields.filter(({ name }) => name.includes('.')).map(({ name }) => name.slice(0, name.indexOf('.'))))
const known = new Set(allFields.map(({ name }) => name))

function unknownFields({ spec, ref, pathOf }: ConfigLayer): readonly Rejected[] {
  const refuse = (name: string, value: Json): Rejected[] => {
    if (known.has(name)) return []
    const refusal = unimplemented.get(name)
    // the value asks for what is done in any case
    if (refusal?.unless !== undefined && refusal.unless === value) return []
    return [{ ref, path: pathOf(name), reason: refusal?.reason ?? 'there is no such field' }]
  }
  return Object.entries(spec).flatMap(([name, value]) => {
    if (!groups.has(name)) return refuse(name, value)
    if (!isObject(value)) return [{ ref, path: pathOf(name), reason: 'must be an object' }]
    return Object.entries(value).flatMap(([part, inner]) => refuse(`${name}.${part}`, inner ?? null))
  })
}
