// SPDX-License-Identifier: Apache-2.0
/** Steps one after the other, begun and cut off anywhere. Layer: test. */
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { StepFailedError } from '#upgrade/storage/options.ts'
import { runSteps, type StepResult } from '#upgrade/steps/run-steps.ts'
import type { Step, StepState } from '#upgrade/steps/step.ts'

/** What a step finds each time that it looks; the last stays. */
function step(name: string, states: readonly StepState[], run: () => void = () => undefined): Step {
  let at = 0
  return {
    name,
    about: `does ${name}`,
    commands: [],
    look: () => Promise.resolve(states[Math.min(at++, states.length - 1)] ?? DONE),
    run: () => {
      run()
      return Promise.resolve()
    },
  }
}

const DONE: StepState = { isDone: true, problems: [] }
const OPEN: StepState = { isDone: false, problems: [] }

async function results(...steps: readonly Step[]): Promise<readonly StepResult[]> {
  const signal = new AbortController().signal
  return await runSteps({ clock: systemClock, steps, signal, tell: () => undefined, before: () => Promise.resolve() })
}

test('a step that is done is not run, and one that is open is run once', async () => {
  const ran: string[] = []
  const note = (name: string) => () => ran.push(name)
  expect(await results(step('lock', [DONE], note('lock')), step('import', [OPEN, DONE], note('import')))).toEqual([
    { name: 'lock', outcome: 'before', problems: [] },
    { name: 'import', outcome: 'done', problems: [] },
  ])
  expect(ran).toEqual(['import'])
})

test('a step with something in the way is not run, and neither are those after it', async () => {
  const ran: string[] = []
  const note = (name: string) => () => ran.push(name)
  const blocked = { isDone: false, problems: ['a tier has another order'] }
  expect(await results(step('import', [blocked], note('import')), step('roll', [OPEN, DONE], note('roll')))).toEqual([
    { name: 'import', outcome: 'stopped', problems: ['a tier has another order'] },
  ])
  expect(ran).toEqual([])
})

test('a step that has not come to its end says what is left', async () => {
  const left = { isDone: false, problems: [], left: ['node b: the image cannot be pulled'] }
  expect(await results(step('roll', [OPEN, left]))).toEqual([
    { name: 'roll', outcome: 'stopped', problems: ['node b: the image cannot be pulled'] },
  ])
  expect(await results(step('roll', [OPEN]))).toMatchObject([{ outcome: 'stopped', problems: ['roll is not done, and does not say why'] }])
})

test('a step that must not be begun any more is not looked at, and says why', async () => {
  const lost = new StepFailedError('lease', ['it was lost'])
  const ran: string[] = []
  const before = (): Promise<void> => (ran.length === 0 ? Promise.resolve() : Promise.reject(lost))
  const steps = ['lock', 'import'].map((name) => step(name, [OPEN, DONE], () => ran.push(name)))
  expect(await runSteps({ clock: systemClock, steps, signal: new AbortController().signal, tell: () => undefined, before })).toEqual([
    { name: 'lock', outcome: 'done', problems: [] },
    { name: 'import', outcome: 'stopped', problems: ['it was lost'] },
  ])
  expect(ran).toEqual(['lock'])
})

test('what cuts a step off is why it stopped; a person who ends the run is no reason', async () => {
  const cutBy = async (reason: Error): Promise<readonly StepResult[]> => {
    const cut = new AbortController()
    const long: Step = {
      ...step('roll', [OPEN]),
      run: (signal) => {
        setTimeout(() => {
          cut.abort(reason)
        }, 10)
        return systemClock.sleep(10_000, signal)
      },
    }
    const before = (): Promise<void> => Promise.resolve()
    return await runSteps({ clock: systemClock, steps: [long], signal: cut.signal, tell: () => undefined, before })
  }
  expect(await cutBy(new StepFailedError('lease', ['it was lost']))).toEqual([
    { name: 'roll', outcome: 'stopped', problems: ['it was lost'] },
  ])
  await expect(cutBy(new Error('stopped'))).rejects.toThrow('stopped')
})
