// SPDX-License-Identifier: Apache-2.0
/** Edits as a person reads them. Layer: upgrade (pure). */
import { pathText } from '../stored/edit.ts'
import type { Destination, Edit, EditOutcome } from './edit.ts'

export const NAMES: Readonly<Record<Destination, string>> = {
  installation: 'Installation default',
  felix: 'FelixConfiguration default',
  controllers: 'ControllersConfiguration default',
}

/** "DaemonSet kube-system/netplane-node: spec.x: 1 → 2 (kubectl-edit): left: why. It goes with the apply." */
export function editText(edit: Edit): string {
  const { resource, field, base, mine, managers, outcome } = edit
  const by = managers.length === 0 ? '' : ` (${managers.join(', ')})`
  const where = field === '' ? resource : `${resource}: ${field}: ${valueText(base)} → ${valueText(mine)}${by}`
  return `${where}: ${outcomeText(outcome)}.${appliedText(edit)}`
}

function outcomeText(outcome: EditOutcome): string {
  switch (outcome.kind) {
    case 'carried':
      return `carried to ${NAMES[outcome.to]}: ${pathText(['spec', ...outcome.path])}: ${valueText(outcome.value)}`
    case 'kept':
      return `kept in ${outcome.where}`
    case 'left':
      return `left: ${outcome.reason}`
    case 'refused':
      return `refused: ${outcome.reason}. ${outcome.remedy.replace(/\.$/, '')}`
  }
}

/** Of what is taken away an apply finds nothing. */
function appliedText({ mine, applied, managers, outcome }: Edit): string {
  if (mine === undefined || outcome.kind === 'refused') return ''
  switch (applied) {
    case 'overwritten':
      return ' An apply overwrites it.'
    case 'goes':
      return ' It goes with an apply.'
    case 'stays':
      return managers.length === 0 ? ' An apply leaves it.' : ` An apply leaves it, as ${managers.join(', ')} alone has it.`
  }
}

function valueText(value: unknown): string {
  return value === undefined ? '–' : JSON.stringify(value)
}
