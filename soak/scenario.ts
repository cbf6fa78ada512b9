// SPDX-License-Identifier: Apache-2.0
/** What the forms of the soak have in common: each is a lab with its own kind of steps, and checks one after
 * another. Layer: soak. */
import { join } from 'node:path'
import { errorText } from '#lib/base/errors.ts'
import type { Check } from './checks.ts'
import { SoakError } from './errors.ts'
import type { History } from './history.ts'

export interface SoakRun<Step extends { readonly kind: string }> {
  /** of the lab: one of our own, so that two soaks do not meet */
  readonly name: string
  readonly minutes: number
  readonly seed: number
  /** what can be read afterwards */
  readonly kept: string
  readonly history: History<Step>
  readonly say: (text: string) => void
  /** ends it before its time */
  readonly signal: AbortSignal
}

/** How many checks held and how many did not. What throws ends it, and has failed. */
export async function tell<Step extends { readonly kind: string }>(
  checks: AsyncIterable<Check>,
  { kept, history, say }: Pick<SoakRun<Step>, 'kept' | 'history' | 'say'>,
): Promise<{ readonly passed: number; readonly failed: number }> {
  let passed = 0
  let failed = 0
  const fail = (name: string, faults: readonly string[]): void => {
    failed++
    say(`FAILED  ${[name, ...faults.slice(0, 1)].join(': ')}`) // of a long log no more than this line may be seen
    for (const fault of faults.slice(1)) say(`          ${fault}`)
  }
  try {
    for await (const check of checks) {
      if (check.faults.length > 0) fail(check.name, check.faults)
      else say(`ok      ${check.name}`)
      if (check.faults.length === 0) passed++
    }
  } catch (thrown) {
    fail(errorText(thrown), thrown instanceof SoakError ? thrown.faults.slice(0, 40) : [])
  }
  if (failed > 0) {
    say(`the last steps before:`)
    for (const line of history.last(15)) say(`          ${line}`)
  }
  history.write(join(kept, 'steps.txt'))
  return { passed, failed }
}
