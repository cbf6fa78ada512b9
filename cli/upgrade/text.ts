// SPDX-License-Identifier: Apache-2.0
/** A plan, and how its steps ended, for people and scripts. Layer: cli (pure). */
import { refusalText } from '#upgrade/refusal.ts'
import { editText } from '#upgrade/edits/text.ts'
import type { UpgradePlan } from '#upgrade/plan/plan.ts'
import type { StepResult } from '#upgrade/steps/run-steps.ts'
import type { Step } from '#upgrade/steps/step.ts'
import { outcomeLines } from '#upgrade/stored/outcome.ts'

export function planLines(plan: UpgradePlan, steps: readonly Step[]): readonly string[] {
  const { found, stored, edits, refusals, warnings, version } = plan
  const outcomes = stored?.outcomes ?? []
  const told = outcomes.filter(({ kind }) => kind === 'changed' || kind === 'left').flatMap(outcomeLines)
  const carried = outcomes.filter(({ kind }) => kind === 'carried').length
  return [
    ...(found === undefined ? [] : [`from v${found.version} (${found.method}, ${placeText(plan)}) to v${version}`, '']),
    ...section('in the way', refusals.map(refusalText)),
    ...section('to be known', warnings.map(refusalText)),
    ...section(`stored objects: ${carried} are carried as they are`, told),
    ...section('edits', edits.edits.map(editText)),
    ...section('steps', stepLines(steps)),
    ...section('images, which nodes pull and nothing looks for before', imagesOf(steps)),
    refusals.length > 0 ? 'Nothing is done while something is in the way.' : 'Nothing is in the way.',
  ]
}

function placeText({ found }: UpgradePlan): string {
  if (found === undefined) return ''
  const variant = found.variant === undefined ? 'a version of ours' : `variant ${found.variant}`
  return `${variant}, datastore ${found.datastore}, namespace ${found.namespace}`
}

function section(heading: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`${heading}:`, ...lines.map((line) => `  ${line}`), '']
}

/** Each once. */
function imagesOf(steps: readonly Step[]): readonly string[] {
  return [...new Set(steps.flatMap(({ images = [] }) => images))]
}

/** What each does, and what a person would type. */
function stepLines(steps: readonly Step[]): readonly string[] {
  return steps.flatMap(({ name, about, commands }, at) => [
    `${at + 1}. ${name}: ${about}`,
    ...commands.map((command) => `     $ ${command}`),
  ])
}

/** `isDry`: the steps were looked at, and none was run. */
export function resultLines(results: readonly StepResult[], isDry: boolean): readonly string[] {
  const stopped = results.find(({ outcome }) => outcome === 'stopped')
  const open = results.filter(({ outcome }) => outcome === 'done')
  if (stopped === undefined && isDry && open.length > 0)
    return [
      `Nothing is in the way of these steps: ${open.map(({ name }) => name).join(', ')}.`,
      ...open.flatMap(({ name, left = [] }) => left.map((text) => `  ${name}: ${text}`)),
    ]
  if (stopped === undefined) return ['The upgrade is done.']
  return [`stopped at ${stopped.name}:`, ...stopped.problems.map((text) => `  ${text}`), 'Mend it, and run the same command again.']
}

export type PlanRecord = Readonly<Record<string, unknown>> & { readonly images: readonly string[] }

/** Of a plan, as JSON has it. */
export function planRecord({ found, stored, ...plan }: UpgradePlan, steps: readonly Step[]): PlanRecord {
  const { daemonSet, ...rest } = found ?? {}
  return {
    ...plan,
    found: found && { ...rest, daemonSet: daemonSet?.metadata.name },
    outcomes: stored?.outcomes ?? [],
    addresses: stored?.findings ?? [],
    images: imagesOf(steps),
    steps: steps.map(({ name, about, commands }) => ({ name, about, commands })),
  }
}
