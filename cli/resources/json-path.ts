// SPDX-License-Identifier: Apache-2.0
/** Paths of columns: the part of JSONPath that definitions and `-o custom-columns` have. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'

export type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'index'; readonly at: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'where'; readonly path: readonly Step[]; readonly value: string }

/** One step, and what of a path it is. */
const STEPS: readonly (readonly [RegExp, (match: readonly string[]) => Step])[] = [
  [/^\[\?\(@((?:\.[\w-]+)+)==(["'])(.*?)\2\)\]/, ([, path = '', , value = '']) => ({ kind: 'where', path: parsePath(path), value })],
  [/^\[\*\]/, () => ({ kind: 'all' })],
  [/^\[(-?\d+)\]/, ([, at = '']) => ({ kind: 'index', at: Number(at) })],
  [/^\[(["'])(.*?)\1\]/, ([, , name = '']) => ({ kind: 'field', name })],
  // a dot of a name is written with a backslash
  [/^\.((?:\\.|[^.[\]\\])+)/, ([, name = '']) => ({ kind: 'field', name: name.replaceAll(/\\(.)/g, '$1') })],
]

/** ".spec.ports[0].name", "{.metadata.labels['a.b']}", "metadata.name". Throws ConfigError. */
export function parsePath(text: string): readonly Step[] {
  const bare = text.replace(/^\{(.*)\}$/, '$1').replace(/^\$/, '')
  let rest = /^[.[]/.test(bare) ? bare : `.${bare}`
  const steps: Step[] = []
  while (rest !== '') {
    const found = STEPS.flatMap(([pattern, stepOf]) => {
      const match = pattern.exec(rest)
      return match === null ? [] : [{ step: stepOf(match), length: match[0].length }]
    })[0]
    if (found === undefined) throw new ConfigError('path', `${JSON.stringify(text)} is none at ${JSON.stringify(rest)}`)
    steps.push(found.step)
    rest = rest.slice(found.length)
  }
  return steps
}

/** All that the path leads to. */
export function valuesAt(value: unknown, [step, ...rest]: readonly Step[]): readonly unknown[] {
  if (step === undefined) return value === undefined || value === null ? [] : [value]
  return next(value, step).flatMap((one) => valuesAt(one, rest))
}

function next(value: unknown, step: Step): readonly unknown[] {
  if (step.kind === 'field') return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []
  if (step.kind === 'all' && isObject(value)) return Object.values(value)
  if (!Array.isArray(value)) return []
  switch (step.kind) {
    case 'all':
      return value
    case 'index':
      return [value.at(step.at)]
    case 'where':
      return value.filter((one) => valuesAt(one, step.path).some((found) => String(found) === step.value))
  }
}
