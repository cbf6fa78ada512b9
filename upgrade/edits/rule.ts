// SPDX-License-Identifier: Apache-2.0
/** What becomes of edits of a field: a table of them is asked from the top. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import type { Target } from '../found/found.ts'
import type { Difference, EditOutcome } from './edit.ts'

/** What an outcome goes by, beside the edit. */
export interface Surroundings {
  readonly target: Target
  readonly nodes: readonly ApiObject[]
  /** `cluster-services-endpoint`, beside the agents */
  readonly endpoint: ApiObject | undefined
}

export type Decide = (edit: Difference, around: Surroundings) => EditOutcome

export interface EditRule {
  /** `*` is anything; `pod.` is `spec.template.spec.`, `container.` its agent, its controllers or its
   * operator, and `list.` that of
   * plugins in the config map */
  readonly fields: readonly string[]
  readonly decide: Decide
}

/** What a field begins with → the same as a pattern. */
const SHORT = {
  'pod.': String.raw`spec\.template\.spec\.`,
  'container.': String.raw`spec\.template\.spec\.containers\[(netplane-node|netplane-controllers|netplane-operator)\]\.`,
  'list.': String.raw`data\.cni_network_config\.`,
} as const

/** Of one field, or of several with the same fate. */
export function rule(fields: string | readonly string[], decide: EditOutcome | Decide): EditRule {
  return { fields: typeof fields === 'string' ? [fields] : fields, decide: typeof decide === 'function' ? decide : () => decide }
}

export function isOf({ fields }: EditRule, field: string): boolean {
  return fields.some((pattern) => matcherOf(pattern).test(field))
}

/** A `*` in brackets ends with them. */
function matcherOf(pattern: string): RegExp {
  const [short = '', beginning = ''] = Object.entries(SHORT).find(([name]) => pattern.startsWith(name)) ?? []
  const literal = pattern.slice(short.length).replaceAll(/[.[\]()+?^$|\\]/g, String.raw`\$&`)
  return new RegExp(`^${beginning}${literal.replaceAll(String.raw`*\]`, String.raw`[^\]]{0,}\]`).replaceAll('*', '.*')}$`)
}

/** Of the agent's container, or of the controllers'. */
export function variables(...names: readonly string[]): readonly string[] {
  return names.map((name) => `container.env[${name}]`)
}

/** Another fate for what is taken away. */
export function unlessGone(gone: EditOutcome, decide: Decide): Decide {
  return (edit, around) => (edit.mine === undefined ? gone : decide(edit, around))
}
