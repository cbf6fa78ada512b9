// SPDX-License-Identifier: Apache-2.0
/** Kinds by the names that people type. Layer: cli (pure). */
import { pluralOf } from '#lib/api/resource.ts'
import { ConfigError } from '#lib/base/errors.ts'
import { OPERATOR_RESOURCES } from '#lib/kube/operator-resources.ts'
import { resources, type Resource } from '#lib/kube/resources.ts'
import { felixSchema } from '#agent/config/open-api.ts'

/** Those that can be written. */
export const V3_RESOURCES = resources(felixSchema())

/** Those that can be shown. */
export const ALL_RESOURCES = [...V3_RESOURCES, ...OPERATOR_RESOURCES]

export function apiVersionOf({ group, version }: Resource): string {
  return `${group}/${version}`
}

/** In any case; of one thing or of many; with the group behind it. Throws ConfigError that lists those there are. */
export function resourceOf(word: string, among: readonly Resource[]): Resource {
  const typed = word.toLowerCase()
  const found = among.find((resource) =>
    ['', `.${resource.group}`, `.${resource.version}.${resource.group}`].some(
      (end) => typed.endsWith(end) && namesOf(resource).includes(typed.slice(0, typed.length - end.length)),
    ),
  )
  if (found !== undefined) return found
  throw new ConfigError('kind', `${JSON.stringify(word)} is none: ${among.map(shownNames).join(', ')}${hint(typed, among)}`)
}

function namesOf({ kind, plural, short, aliases }: Resource): readonly string[] {
  return [kind.toLowerCase(), plural, ...[...short, ...aliases].flatMap((name) => [name, pluralOf(name)])]
}

/** "hostendpoints (hep)" */
function shownNames({ plural, short, aliases }: Resource): string {
  const others = [...short, ...aliases]
  return others.length === 0 ? plural : `${plural} (${others.join(', ')})`
}

/** Of kinds that older command lines have among ours, and of those that the operator alone writes. */
function hint(typed: string, among: readonly Resource[]): string {
  if (/^no(des?|s)?$/.test(typed)) return '; a node is an object of Kubernetes: kubectl has the same verbs for it'
  const operators = OPERATOR_RESOURCES.find((resource) => namesOf(resource).includes(typed))
  return operators === undefined || among.includes(operators)
    ? ''
    : `; ${operators.kind} is of ${apiVersionOf(operators)}: kubectl has the same verbs for it`
}
