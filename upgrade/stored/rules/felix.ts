// SPDX-License-Identifier: Apache-2.0
/** FelixConfiguration: fields with other names, defaults that have changed, and what is not obeyed.
 * Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { plainJson } from '#lib/kube/parse/felix-configuration.ts'
import type { Json } from '#lib/model/felix-configuration.ts'
import { layerFrom, layerFromEnvironment } from '#agent/config/layers.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { allFields } from '#agent/config/schema.ts'
import { unimplemented } from '#agent/config/unimplemented.ts'
import type { V3Object } from '../outcome.ts'
import { pathOf, valueAt, type Edit, type Path, type Refusal, type Rule } from '../edit.ts'

interface Renamed {
  readonly old: string
  readonly now: string
  readonly value: (before: unknown) => unknown
}

const same = (before: unknown): unknown => before

export const RENAMED: readonly Renamed[] = [
  {
    old: 'bpfConnectTimeLoadBalancingEnabled',
    now: 'bpfConnectTimeLoadBalancing',
    value: (before) => (before === true ? 'TCP' : before === false ? 'Disabled' : before),
  },
  { old: 'natPortRange', now: 'bpfPSNATPorts', value: same },
  { old: 'bpfKubeProxyIptablesCleanupEnabled', now: 'bpfProxyIptablesCleanupEnabled', value: same },
]

/** The new name goes first where both are there. */
export const renamedFields: Rule = (object) =>
  RENAMED.flatMap(({ old, now, value }): readonly Edit[] => {
    const before = valueAt(object, ['spec', old])
    if (before === undefined) return []
    const isSaid = valueAt(object, ['spec', now]) !== undefined
    const why = `is called ${now} now`
    return [{ path: ['spec', old], after: undefined, why }, ...(isSaid ? [] : [{ path: ['spec', now], after: value(before), why }])]
  })

/** What older agents did where nothing was written, and newer ones do not. */
export const OLD_DEFAULTS: Readonly<Record<string, Json>> = {
  bpfEnabled: false,
  defaultEndpointToHostAction: 'Drop',
  vxlanVNI: 4096,
}

export const oldDefaults: Rule = (object) =>
  Object.entries(OLD_DEFAULTS)
    .filter(([name]) => valueAt(object, ['spec', name]) === undefined)
    .map(([name, after]) => ({ path: ['spec', name], after, why: 'the default of older versions, written out' }))

/** What the environment of the old agents says goes before every object, as it did. */
export function fromEnvironment(environment: Readonly<Record<string, string>>): Rule {
  const { spec } = layerFromEnvironment(environment)
  return (object) =>
    allFields.flatMap(({ name, parser, fallback }): readonly Edit[] => {
      const path = pathOf(`spec.${name}`)
      const said = written(spec, name)
      const read = said === undefined ? undefined : parser.parse(said)
      const isUsual = read?.kind === 'ok' && deepEqual(read.value, fallback) && valueAt(object, path) === undefined
      return said === undefined || (isUsual && !Object.hasOwn(OLD_DEFAULTS, name))
        ? []
        : [{ path, after: said, why: 'the environment of the agents says it, which went first' }]
    })
}

function written(spec: Readonly<Record<string, Json>>, name: string): Json | undefined {
  const [group = '', part] = name.split('.')
  const outer = spec[group]
  return part === undefined ? outer : isObject(outer) ? outer[part] : undefined
}

/** Fields that an administrator has to do without first: traffic or policy depends on them. */
export const STOPS: readonly string[] = ['wireguardEnabled', 'wireguardEnabledV6', 'floatingIPs', 'ipipEnabled', 'policySyncPathPrefix']

/** Fields that are not obeyed are left out, but for those that something depends on; values that cannot be used are
 * refused. */
export const unusedFields: Rule = (object) => {
  const { spec = {} } = object
  if (!isObject(spec)) return []
  try {
    const layer = layerFrom({ kind: 'FelixConfiguration', namespace: '', name: object.metadata.name, spec: plainJson(spec, 'spec') })
    return resolveConfig([layer], undefined).rejected.map(({ path, reason }) => stepFor(object, path, reason))
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return [{ path: pathOf(thrown.path), reason: thrown.reason }]
  }
}

const known: ReadonlySet<string> = new Set(allFields.map(({ name }) => name))

/** A field's name may have any letters: it is that of a group and of a part of it only where there is no such field. */
function pathBelow(spec: unknown, name: string): Path {
  const at = name.indexOf('.')
  return at < 0 || (isObject(spec) && Object.hasOwn(spec, name)) ? ['spec', name] : ['spec', name.slice(0, at), name.slice(at + 1)]
}

function stepFor(object: V3Object, text: string, reason: string): Edit | Refusal {
  const name = text.slice('spec.'.length)
  const path = pathBelow(object.spec, name)
  const isGroup = !known.has(name) && !unimplemented.has(name) && [...known].some((one) => one.startsWith(`${name}.`))
  const [value, { unless = '' } = {}] = [valueAt(object, path), unimplemented.get(name)]
  if (typeof value === 'string' && typeof unless === 'string' && unless !== '' && value.toLowerCase() === unless.toLowerCase())
    return { path, after: unless, why: 'is written so here' }
  const isStop = STOPS.includes(name) && value !== ''
  return known.has(name) || isGroup || isStop ? { path, reason } : { path, after: undefined, why: reason }
}
