// SPDX-License-Identifier: Apache-2.0
/** A bad policy, and the process that comes after the one that saw it become bad. Layer: test. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LastGoodFile } from '#lib/store/last-good.ts'
import { kubernetesPolicy, service, type Manifest } from '../../support/build.ts'
import { Run } from './source-run.ts'

const REF = 'KubernetesNetworkPolicy/default/p'
const POLICY = kubernetesPolicy('p')
const BAD = { ...POLICY, spec: { podSelector: {}, ingress: [{ from: [{ nonsense: true }] }] } }

let folder: string
let resources: string
let state: string
let runs: Run[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-last-good-'))
  resources = join(folder, 'resources')
  state = join(folder, 'state', 'last-good.json')
  mkdirSync(resources)
  runs = []
})

afterEach(async () => {
  for (const run of runs) await run.end()
  rmSync(folder, { recursive: true })
})

function put(file: string, ...objects: readonly Manifest[]): void {
  writeFileSync(join(resources, file), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
}

async function start(): Promise<Run> {
  const run = new Run(resources, { settleMs: 10, lastGood: new LastGoodFile(state) })
  runs.push(run)
  await expect.poll(() => run.synced).toBe(1)
  return run
}

/** good, closed or none */
function shown(run: Run, ref = REF): string {
  const object = run.objects.get(ref)
  return object === undefined ? 'none' : 'closed' in object ? 'closed' : 'good'
}

/** Starts with a good one, and sees it become something else. */
async function becomes(change: () => void, problems = 1): Promise<void> {
  put('p.json', POLICY, service('web'))
  const first = await start()
  change()
  await expect.poll(() => first.problems.length).toBe(problems)
  expect(shown(first)).toBe('good')
  await expect.poll(() => existsSync(state)).toBe(true)
  await first.end()
}

describe('a policy that was good', () => {
  test.each([
    ['and is bad now', () => put('p.json', BAD, service('web'))],
    ['in a file that cannot be understood any more', () => writeFileSync(join(resources, 'p.json'), '{')],
  ])('%s stays over a restart, and over the next', async (_, change) => {
    await becomes(change)
    const second = await start()
    expect([shown(second), second.problems.length]).toEqual(['good', 1])
    await second.end()
    expect(shown(await start())).toBe('good')
  })

  test('is not kept once it is good again', async () => {
    await becomes(() => put('p.json', BAD))
    put('p.json', POLICY)
    const second = await start()
    await expect.poll(() => existsSync(state)).toBe(false)
    expect(shown(second)).toBe('good')
  })

  test('is gone when its file is, also while no source ran', async () => {
    await becomes(() => put('p.json', BAD))
    rmSync(join(resources, 'p.json'))
    const second = await start()
    await expect.poll(() => [shown(second), existsSync(state)]).toEqual(['none', false])
  })

  test('is the only thing that is kept: services do not allow or deny traffic', async () => {
    await becomes(() => put('p.json', BAD, { ...service('web'), spec: 3 }), 2)
    expect(JSON.parse(readFileSync(state, 'utf8'))).toEqual([{ file: 'p.json', object: POLICY }])
  })
})

test('a policy that never was good is closed, after a restart as well, also when its file is broken by then', async () => {
  put('p.json', BAD)
  const first = await start()
  expect(shown(first)).toBe('closed')
  writeFileSync(join(resources, 'p.json'), '{')
  await expect.poll(() => existsSync(state)).toBe(true)
  await first.end()
  expect(shown(await start())).toBe('closed')
})

test('the source reports what cannot be kept', async () => {
  put('p.json', POLICY)
  writeFileSync(join(folder, 'state'), 'no folder')
  const run = await start()
  put('p.json', BAD)
  await expect.poll(() => run.problems.some((problem) => problem.includes('cannot be kept for the next start'))).toBe(true)
  expect(shown(run)).toBe('good')
})

test('a file that is no list of ours counts as none', async () => {
  mkdirSync(join(folder, 'state'))
  writeFileSync(state, '[{"file": 3}, 4, {"file": "a.json", "object": {"kind": "Nonsense"}}]')
  put('p.json', POLICY)
  expect(shown(await start())).toBe('good')
})
