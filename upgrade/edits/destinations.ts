// SPDX-License-Identifier: Apache-2.0
/** What becomes of an edit: every one has an outcome. Layer: upgrade (pure). */
import { left, refused, type Difference, type EditOutcome } from './edit.ts'
import { TYPHA } from './pristine/template.ts'
import { isOf, rule, type EditRule, type Surroundings } from './rule.ts'
import { AGENT_RULES } from './rules/agents.ts'
import { CONFIG_MAP_RULES } from './rules/config-map.ts'
import { CONTROLLERS_RULES } from './rules/controllers.ts'
import { RIGHTS_RULES } from './rules/rights.ts'

const NO_TYPHA = left('there is no typha: agents ask the API server')

/** The first table that is for the object counts, and in it the first rule. */
export const TABLES: readonly (readonly [what: string, isFor: (edit: Difference) => boolean, rules: readonly EditRule[]])[] = [
  ['Typha', ({ name }) => name === TYPHA, [rule('*', NO_TYPHA)]],
  ['Agents', ({ kind }) => kind === 'DaemonSet', AGENT_RULES],
  ['Controllers', ({ kind }) => kind === 'Deployment', CONTROLLERS_RULES],
  ['Config map', ({ kind }) => kind === 'ConfigMap', CONFIG_MAP_RULES],
  ['Rights', ({ kind }) => ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'].includes(kind), RIGHTS_RULES],
  ['Budgets', ({ kind }) => kind === 'PodDisruptionBudget', [rule('*', left('the controllers are one pod, which may go at any time'))]],
]

/** `tables`: of the form that the object is of. */
export function destinationOf(edit: Difference, around: Surroundings, tables = TABLES): EditOutcome {
  if (edit.steps.length === 0) return left('it is gone, and this version makes what it needs')
  const rules = tables.find(([, isFor]) => isFor(edit))?.[2] ?? []
  return rules.find((one) => isOf(one, edit.field))?.decide(edit, around) ?? unknown(edit)
}

function unknown({ mine, base }: Difference): EditOutcome {
  return refused(
    'this version has no place for it',
    mine === undefined
      ? `Put it back: ${JSON.stringify(base)}.`
      : base === undefined
        ? 'Take it away.'
        : `Put ${JSON.stringify(base)} back.`,
  )
}
