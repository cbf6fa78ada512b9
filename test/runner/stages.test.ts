// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { setImmediate } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import type { Outcome } from './failures.ts'
import { runStages, type Part, type Stage } from './stages.ts'

const FINE: Outcome = { passed: 1, failed: 0, skipped: 0, failures: [] }
const alone = (name: string, ...parts: Part[]): Stage => ({ name, parts })
const shared = (name: string, ...parts: Part[]): Stage => ({ name, weight: 1, parts })
const nothing: Part = () => Promise.resolve(FINE)

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

/** What is printed by the run, and its exit code. */
async function run(stages: readonly Stage[]): Promise<{ readonly code: number; readonly output: string }> {
  let output = ''
  const write = (chunk: unknown): boolean => {
    output += String(chunk)
    return true
  }
  vi.spyOn(process.stdout, 'write').mockImplementation(write)
  vi.spyOn(process.stderr, 'write').mockImplementation(write)
  vi.spyOn(console, 'log').mockImplementation((text: string) => write(`${text}\n`))
  const code = await runStages(stages)
  return { code, output: output.replaceAll(/ in \d+ s, processors \d+ % idle, \d+ s of processor time/g, '') }
}

test('two parts at once, of which each is printed as a whole; none beside one that is alone', async () => {
  let running = 0
  const seen = new Map<string, number>()
  const part = (name: string): Part => {
    return async (print) => {
      running++
      print(`${name} begins\n`)
      for (let turn = 0; turn < 5; turn++) {
        await setImmediate()
        seen.set(name, Math.max(running, seen.get(name) ?? 0))
      }
      print(`${name} ends\n`, process.stderr)
      running--
      return FINE
    }
  }
  const { code, output } = await run([shared('a', part('a1'), part('a2'), part('a3')), shared('b', part('b')), alone('c', part('c'))])
  expect([...seen.values()].sort()).toEqual([1, 2, 2, 2, 2])
  for (const name of ['a1', 'a2', 'a3', 'b', 'c']) expect(output).toContain(`${name} begins\n${name} ends\n== `)
  expect(output.trimEnd().split('\n').at(-1)).toBe('5 passed, 0 failed, 0 skipped')
  expect(code).toBe(0)
})

test('what failed is named before the last line; what is missing counts as one skip, and fails CI', async () => {
  const broken: Part = () =>
    Promise.resolve({
      ...{ passed: 2, failed: 1, skipped: 0 },
      failures: [{ text: 'x.test.ts > y', file: 'x.test.ts' }],
      files: [{ name: 'x.test.ts', seconds: 7, passed: 2, failed: 1, skipped: 0 }],
    })
  const missing: Stage = { name: 'm', weight: 1, obstacle: 'needs root', parts: [broken, broken] }
  const { code, output } = await run([shared('a', nothing, broken), missing])
  expect(output).toContain('== m: skipped, needs root')
  expect(output.trimEnd().split('\n').slice(-3)).toEqual(['failed:', '  a: x.test.ts > y', '3 passed, 1 failed, 1 skipped'])
  expect(output).toContain('the slowest files:\n  7.0 s x.test.ts\nthe stages')
  expect(code).toBe(1)
  vi.stubEnv('CI', 'true')
  expect((await run([{ ...missing }])).code).toBe(1)
  vi.stubEnv('CI', '')
  expect((await run([{ ...missing }])).code).toBe(0)
})

test('what passes the second time is named with its row for the list', async () => {
  const broken: Part = () => Promise.resolve({ passed: 0, failed: 1, skipped: 0, failures: [{ text: 'FAILED one' }] })
  const { code, output } = await run([{ name: 'x', parts: [broken], again: () => nothing }])
  const [unsteady, head, row, count] = output.trimEnd().split('\n').slice(-4)
  expect([unsteady, head, count]).toEqual(['unsteady: x: FAILED one', 'test/unsteady.md is to have:', '1 passed, 0 failed, 0 skipped'])
  expect(row).toMatch(/^\| `x` \| FAILED one \| \d{4}-\d\d-\d\d \|$/)
  expect(code).toBe(0)
})

test('a job that throws is a failure, and the others run', async () => {
  const broken: Part = () => Promise.reject(new Error('no report'))
  const { code, output } = await run([shared('a', broken, nothing), alone('b', nothing)])
  expect(output.trimEnd().split('\n').at(-1)).toBe('2 passed, 1 failed, 0 skipped')
  expect(output).toContain('  a: Error: no report')
  expect(code).toBe(1)
})

test('of test files that passed there is one line, of others all that they said', async () => {
  const files = (failed: number): Part => {
    return (print) => {
      print('dots\n')
      return Promise.resolve({
        passed: 1,
        failed,
        skipped: 0,
        failures: [],
        files: [{ name: 'x', seconds: 1, passed: 1, failed, skipped: 0 }],
      })
    }
  }
  expect((await run([shared('a', files(0))])).output).toMatch(/^== a: 1 passed/)
  expect((await run([shared('a', files(1))])).output).toMatch(/^\n== a\ndots\n== a: 1 passed, 1 failed/)
})

test('what each job took is kept, but of one that failed or ran alone', async () => {
  let kept: object = {}
  const keep = (measured: object): readonly string[] => {
    kept = measured
    return ['kept']
  }
  const broken: Part = () => Promise.resolve({ passed: 0, failed: 1, skipped: 0, failures: [{ text: 'FAILED one' }] })
  const file = (name: string): Part => {
    return () => Promise.resolve({ ...FINE, files: [{ name, seconds: 7, passed: 1, failed: 0, skipped: 0 }] })
  }
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
  const stages: Stage[] = [shared('a', nothing), shared('b', broken), alone('c', nothing)]
  await runStages([...stages, { name: 'd', weight: 1, files: { names: ['x.test.ts'], run: ([name = '']) => file(name) } }], { keep })
  expect(kept).toEqual({ a: 1, 'x.test.ts': 1 })
})
