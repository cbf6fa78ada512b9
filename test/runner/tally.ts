// SPDX-License-Identifier: Apache-2.0
/** What many runs of the same tests come to. Layer: test (pure). */
import type { TestResult } from './failures.ts'

/** What is done to a run: two busy loops beside it, half a processor for it, or pauses of all of it. */
export type Way = 'busy' | 'slow' | 'halting'

/** A third of the runs each. Kubelets of a real cluster have cgroups of their own, which only busy loops disturb. */
export function disturbancesOf(count: number, project: string): readonly Way[] {
  const ways: readonly Way[] = project === 'e2e' ? ['busy'] : ['busy', 'slow', 'halting']
  return Array.from({ length: count }, (_, at) => ways[Math.floor((at * ways.length) / count)] ?? 'busy')
}

export interface Run {
  readonly way: Way
  readonly tests: readonly TestResult[]
}

/** "18/20 file > test", those with failures last, each with its first error. */
export function tallyOf(runs: readonly Run[]): readonly string[] {
  const lines = [...namesOf(runs)].map((name) => {
    // tests of one name are one
    const of = runs.map(({ way, tests }) => ({ way, errors: tests.filter((test) => test.name === name).map(({ error }) => error) }))
    const passed = of.filter(({ errors }) => errors.length > 0 && errors.every((error) => error === undefined)).length
    const [first = ''] = of.flatMap(({ way, errors }) => errors.flatMap((error) => (error === undefined ? [] : `\n    ${way}: ${error}`)))
    return { passed, line: `${passed}/${runs.length} ${name}${first}` }
  })
  return lines.toSorted((a, b) => b.passed - a.passed).map(({ line }) => line)
}

/** Every run had tests, and each test passed in each run. */
export function isSteady(runs: readonly Run[]): boolean {
  const count = namesOf(runs).size
  return count > 0 && runs.every((run) => namesOf([run]).size === count && run.tests.every(({ error }) => error === undefined))
}

function namesOf(runs: readonly Run[]): ReadonlySet<string> {
  return new Set(runs.flatMap(({ tests }) => tests.map(({ name }) => name)))
}
