// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ALONE, SLOW, stagesIn } from '../../gate.ts'
import type { Part, Stage } from '../stages.ts'
import { DURATIONS, readDurations, sharesOf, UNKNOWN_S } from './durations.ts'
import { batchesOf, jobsOf } from './jobs.ts'
import { MOSTLY_WAITING } from './scheduler.ts'
import { stageTimes } from './stage-times.ts'

const nothing: Part = () => Promise.resolve({ passed: 1, failed: 0, skipped: 0, failures: [] })

test('a long file is by itself, short ones share a process up to its time, and one that is not known is long', () => {
  const durations = { 'x/long': 100, 'x/a': 14, 'x/b': 14, 'x/c': 14, 'x/d': 1 }
  const batches = batchesOf(['x/new', 'x/d', 'x/c', 'x/long', 'x/b', 'x/a'], durations)
  expect(batches).toEqual([['x/new'], ['x/long'], ['x/a', 'x/b'], ['x/c', 'x/d']])
})

test('jobs have the title and the time of their files or of their command; what cannot run is one job', () => {
  const files = { names: ['x/a', 'x/b', 'x/c'], run: () => nothing }
  const stages: Stage[] = [
    { name: 'kernel', weight: 1, files },
    { name: 'loss', parts: [nothing] },
    { name: 'api', weight: 1, obstacle: 'needs root', files },
  ]
  const jobs = jobsOf(stages, { 'x/a': 2, 'x/b': 3, loss: 376 })
  expect(jobs.map(({ title, seconds, weight }) => [title, seconds, weight])).toEqual([
    ['kernel x/c', UNKNOWN_S, 1],
    ['kernel x/a and 1 more', 5, 1],
    ['loss', 376, undefined],
    ['api', UNKNOWN_S, 1],
  ])
})

test('a job is lighter than its stage where each of its files waits most of its time', () => {
  const files = { names: ['x/long', 'x/a', 'x/b'], waiting: ['x/long', 'x/a'], run: () => nothing }
  const jobs = jobsOf([{ name: 'api', weight: 1, files }], { 'x/long': 100, 'x/a': 2, 'x/b': 3 })
  expect(jobs.map(({ title, weight }) => [title, weight])).toEqual([
    ['api x/long', MOSTLY_WAITING],
    ['api x/a and 1 more', 1],
  ])
})

test('every file of kernel, api and lab is in one job, but for those that run alone or outside of the gate', () => {
  const stages = stagesIn('build')
  for (const name of ['kernel', 'api', 'lab']) {
    const names = stages.find((stage) => stage.name === name)?.files?.names ?? []
    expect(names.length).toBeGreaterThan(30)
    expect(batchesOf(names, {}).flat().sort()).toEqual([...names].sort())
  }
  const waiting = stages.flatMap(({ files }) => files?.waiting ?? [])
  expect(waiting.filter((file) => !existsSync(file))).toEqual([])
  const names = stages.flatMap(({ files }) => files?.names ?? [])
  expect([...ALONE, ...SLOW.bench, ...SLOW.long].filter((file) => names.includes(file) || !existsSync(file))).toEqual([])
})

test('files that shared a process have their own time, and the same part of the rest', () => {
  const file = (name: string, seconds: number) => ({ name, seconds, passed: 1, failed: 0, skipped: 0 })
  expect(sharesOf([file('a', 10), file('b', 0.2)], 14.2)).toEqual({ a: 12, b: 2 })
  expect(sharesOf([], 3)).toEqual({})
})

test('the checked-in durations are seconds, and another form is refused', () => {
  expect(Object.keys(readDurations(readFileSync(DURATIONS, 'utf8'))).length).toBeGreaterThan(150)
  for (const text of ['null', '{"a": "3"}', '{"a": 0}']) expect(() => readDurations(text)).toThrow('test/durations.json')
})

test('stages are told with their jobs, the longest first, and all of them together', () => {
  const times = [
    { stage: 'lint', seconds: 20, worked: 19 },
    { stage: 'kernel', seconds: 30.4, worked: 7 },
    { stage: 'kernel', seconds: 10, worked: 4.6 },
  ]
  expect(stageTimes(times)).toEqual([
    'the stages, and the seconds of their jobs:',
    '  kernel: 2 jobs, 40 s, 12 s of processor time',
    '  lint: 1 job, 20 s, 19 s of processor time',
    '  together: 3 jobs, 60 s, 31 s of processor time',
  ])
})
