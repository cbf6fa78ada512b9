// SPDX-License-Identifier: Apache-2.0
/** A real directory, watched: everything editors, operators and accidents do to it. Layer: test. */
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import type { Clock } from '#lib/base/clock.ts'
import { service } from '../../support/build.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { until } from '../../../testkit/base/until.ts'
import { Run } from './source-run.ts'

let root = ''
let run: Run | undefined

beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), 'np-source-')), 'manifests')
  mkdirSync(root)
})

afterEach(async () => {
  await run?.end()
  run = undefined
  rmSync(dirname(root), { recursive: true, force: true })
})

const text = (name: string, port = 80): string => JSON.stringify(service(name, { ports: [{ port }] }))

function write(file: string, content: string): void {
  writeFileSync(join(root, file), content)
}

/** As editors and kubectl users do: a complete file under another name, then moved. */
function replace(file: string, content: string): void {
  write(`.${file}.tmp`, content)
  renameSync(join(root, `.${file}.tmp`), join(root, file))
}

async function start(): Promise<Run> {
  const started = new Run(root)
  run = started
  await until('synced', () => started.synced === 1)
  return started
}

/** What was deleted, once every deletion that was due is passed on: one more that is due after them all has been. */
async function deletions(run: Run): Promise<readonly string[]> {
  write('last.json', text('last'))
  await until('the last one’s coming', () => run.port('last') === 80)
  unlinkSync(join(root, 'last.json'))
  await until('the last one’s going', () => run.deleted.includes('Service/default/last'))
  return run.deleted.filter((ref) => ref !== 'Service/default/last')
}

/** Lets time pass for a source, in steps so small that it can do something in each. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5) {
    clock.advance(5)
    await setImmediate()
    await setImmediate()
  }
}

describe('what is there', () => {
  test('is read before the source says synced', async () => {
    mkdirSync(join(root, 'sub'))
    write('a.json', text('a'))
    write('sub/list.yaml', `kind: List\napiVersion: v1\nitems:\n- ${text('b')}\n- ${text('c')}\n`)
    const { objects, problems } = await start()
    expect([[...objects.keys()].sort(), problems]).toEqual([['Service/default/a', 'Service/default/b', 'Service/default/c'], []])
  })

  test('may be more than one turn’s worth', async () => {
    for (let at = 0; at < 600; at++) write(`${at}.json`, text(`s${at}`))
    expect((await start()).objects.size).toBe(600)
  })

  test('may be nothing, or not even a directory yet', async () => {
    rmSync(root, { recursive: true })
    const early = new Run(root)
    run = early
    await until('its absence said', () => early.status.unavailable !== undefined)
    expect(early.status.unavailable?.reason).toBe(`${root} does not exist`)
    expect(early.synced).toBe(0)
    mkdirSync(root)
    await until('synced', () => early.synced === 1)
    expect(early.status.unavailable).toBeUndefined()
    write('a.json', text('a'))
    await until('a', () => early.port('a') === 80)
    expect(early.synced).toBe(1)
  })
})

describe('a file that', () => {
  test('appears, is replaced, is written in place, and goes', async () => {
    const run = await start()
    write('a.json', text('a', 1))
    await until('a appears', () => run.port('a') === 1)
    replace('a.json', text('a', 2))
    await until('a is replaced', () => run.port('a') === 2)
    write('a.json', text('a', 3))
    await until('a is written', () => run.port('a') === 3)
    write('.a.json.swp', 'x')
    unlinkSync(join(root, 'a.json'))
    await until('a goes', () => run.objects.size === 0)
  })

  test('is written bit by bit is never half a file', async () => {
    write('a.yaml', `${text('a')}\n---\n${text('b')}\n`)
    // only the wait for deletions is as long as this: it does not end by itself
    const held = new FakeClock()
    const clock: Clock = { ...systemClock, after: (ms, run) => (ms > 500 ? held : systemClock).after(ms, run) }
    const started = new Run(root, { clock, settleMs: 3_000 })
    run = started
    await until('synced', () => started.synced === 1)
    truncateSync(join(root, 'a.yaml'), 0)
    await until('its emptiness seen', () => held.pending === 1)
    appendFileSync(join(root, 'a.yaml'), `${text('a', 81)}\n---\n`)
    await until('its first half read', () => started.port('a') === 81)
    expect([started.port('b'), held.pending]).toEqual([80, 1])
    appendFileSync(join(root, 'a.yaml'), `${text('b', 81)}\n`)
    await until('both written', () => started.port('b') === 81)
    await until('the deletions called off', () => held.pending === 0)
    expect(started.deleted).toEqual([])
  })

  test('moves to another name takes its objects along', async () => {
    write('a.json', text('a'))
    const run = await start()
    renameSync(join(root, 'a.json'), join(root, 'b.json'))
    await until(
      'b holds it',
      () => run.source.placesOf([{ ref: 'Service/default/a', path: 'spec.ports[0].port', reason: '' }])[0] === 'b.json:1',
    )
    expect([await deletions(run), run.port('a')]).toEqual([[], 80])
  })

  test('breaks keeps its last good objects and says where', async () => {
    write('a.yaml', `${text('a')}\n---\n${text('b')}\n`)
    const run = await start()
    replace('a.yaml', `${text('a', 81)}\n---\n${text('b', 99999)}\n`)
    await until('the problem said', () => run.problems.length > 0)
    expect([run.problems, run.port('a'), run.port('b')]).toEqual([
      ['a.yaml:3: Service default/b: spec.ports[0].port: must be 1..65535'],
      81,
      80,
    ])
    replace('a.yaml', '{')
    await until('another problem said', () => run.problems[0]?.includes('YAML') === true)
    expect([await deletions(run), run.port('a'), run.port('b')]).toEqual([[], 81, 80])
    replace('a.yaml', text('a', 82))
    await until('b gone', () => run.objects.size === 1)
    expect([run.problems, run.port('a')]).toEqual([[], 82])
  })

  test('defines what another one has is reported', async () => {
    write('b.json', text('a', 2))
    const run = await start()
    write('a.json', text('a', 1))
    await until('a.json wins', () => run.port('a') === 1)
    await until('b.json blamed', () => run.problems.length === 1)
    expect(run.problems).toEqual(['b.json:1: Service default/a: is already defined in a.json'])
    unlinkSync(join(root, 'a.json'))
    await until('b.json inherits', () => run.port('a') === 2)
    expect(run.deleted).toEqual([])
  })
})

describe('subdirectories', () => {
  test('appear with what is in them, and go', async () => {
    const run = await start()
    mkdirSync(join(root, 'sub/deep'), { recursive: true })
    write('sub/deep/a.json', text('a'))
    await until('a appears', () => run.port('a') === 80)
    write('sub/b.json', text('b'))
    await until('b appears', () => run.port('b') === 80)
    replace('c.json', text('c'))
    rmSync(join(root, 'sub'), { recursive: true })
    await until('both gone', () => run.objects.size === 1)
  })

  test('may be called as files are, and take the place of one', async () => {
    write('a.json', text('a', 1))
    const run = await start()
    mkdirSync(join(root, 'b.yaml'))
    write('b.yaml/b.json', text('b'))
    await until('b appears', () => run.port('b') === 80)
    mkdirSync(join(root, '.a'))
    write('.a/a.json', text('a', 2))
    unlinkSync(join(root, 'a.json'))
    renameSync(join(root, '.a'), join(root, 'a.json'))
    await until('a is another', () => run.port('a') === 2)
    expect(await deletions(run)).toEqual([])
  })

  test.each(['sub', 'sub.yaml'])('that cannot be looked at keep what was read of them, links in a circle do no harm: %s', async (sub) => {
    mkdirSync(join(root, '.there'))
    write('.there/a.json', text('a'))
    symlinkSync('.there', join(root, sub))
    const run = await start()
    unlinkSync(join(root, sub))
    symlinkSync(sub, join(root, '.circle'))
    renameSync(join(root, '.circle'), join(root, sub))
    symlinkSync('circle.json', join(root, 'circle.json'))
    await until('both said', () => run.problems.length === 2)
    expect(run.problems).toEqual(['circle.json: cannot be read: ELOOP', `${sub}: cannot be read: ELOOP`])
    write('b.json', text('b'))
    await until('b appears', () => run.port('b') === 80)
    expect([await deletions(run), run.port('a')]).toEqual([[], 80])
    unlinkSync(join(root, 'circle.json'))
    unlinkSync(join(root, sub))
    await until('a gone', () => run.port('a') === undefined)
    await until('nothing wrong', () => run.problems.length === 0)
  })

  test('mounted as Kubernetes mounts a ConfigMap: everything changes by one link', async () => {
    mkdirSync(join(root, '..v1'))
    mkdirSync(join(root, '..v2'))
    write('..v1/a.json', text('a', 1))
    write('..v2/a.json', text('a', 2))
    symlinkSync('..v1', join(root, '..data'))
    symlinkSync('..data/a.json', join(root, 'a.json'))
    const run = await start()
    expect(run.port('a')).toBe(1)
    symlinkSync('..v2', join(root, '..tmp'))
    renameSync(join(root, '..tmp'), join(root, '..data'))
    await until('the other version', () => run.port('a') === 2)
  })
})

describe('the directory', () => {
  test('that cannot be looked at is waited for, with what was read of it', async () => {
    write('a.json', text('a'))
    const run = await start()
    renameSync(root, `${root}-old`)
    symlinkSync(root, root)
    await until('that said', () => run.status.unavailable !== undefined)
    expect(run.status.unavailable?.reason).toBe('the directory cannot be read (ELOOP): its last good state stays in force')
    unlinkSync(root)
    renameSync(`${root}-old`, root)
    await until('back', () => run.status.unavailable === undefined)
    expect([run.deleted, run.port('a')]).toEqual([[], 80])
  })

  test('removed whole takes nothing with it; it goes on when it is back', async () => {
    for (let at = 0; at < 300; at++) write(`${at}.json`, text(`s${at}`))
    const clock = new FakeClock()
    const started = new Run(root, { clock })
    run = started
    const inTime = (what: string, holds: () => boolean): Promise<void> =>
      until(what, () => {
        clock.advance(5)
        return holds()
      })
    await inTime('synced', () => started.synced === 1)
    const before = clock.wall()
    rmSync(root, { recursive: true })
    await inTime('its absence said', () => started.status.unavailable !== undefined)
    expect(started.status.unavailable?.reason).toContain('the directory is gone')
    const since = started.status.unavailable?.since ?? 0
    expect([since > before, since <= clock.wall()]).toEqual([true, true])
    await pass(clock, 2_000)
    expect([started.objects.size, started.deleted]).toEqual([300, []])
    mkdirSync(root)
    await inTime('emptiness said', () => started.status.unavailable?.reason.includes('empty') === true)
    expect(started.status.unavailable?.since).toBe(since)
    await pass(clock, 2_000)
    expect(started.deleted).toEqual([])
    write('0.json', text('s0', 81))
    await inTime('the rest gone', () => started.objects.size === 1)
    expect([started.port('s0'), started.status.unavailable]).toEqual([81, undefined])
  })

  test('swapped for another one is followed', async () => {
    write('a.json', text('a', 1))
    const run = await start()
    mkdirSync(`${root}-new`)
    writeFileSync(join(`${root}-new`, 'a.json'), text('a', 2))
    renameSync(root, `${root}-old`)
    renameSync(`${root}-new`, root)
    await until('the new one read', () => run.port('a') === 2)
    replace('a.json', text('a', 3))
    await until('and watched', () => run.port('a') === 3)
  })

  test('emptied file by file is empty', async () => {
    for (const name of ['a', 'b']) write(`${name}.json`, text(name))
    const run = await start()
    for (const name of ['a', 'b']) unlinkSync(join(root, `${name}.json`))
    await until('all gone', () => run.objects.size === 0)
    expect(run.deleted.sort()).toEqual(['Service/default/a', 'Service/default/b'])
  })
})

test('a flood of changes arrives whole', async () => {
  const run = await start()
  for (let round = 1; round <= 3; round++) for (let at = 0; at < 400; at++) replace(`${at}.json`, text(`s${at}`, round))
  await until(
    'all at their last version',
    () => run.objects.size === 400 && Array.from({ length: 400 }, (_, at) => run.port(`s${at}`)).every((port) => port === 3),
  )
})

test('a source ends when asked to, in the middle of things too', async () => {
  for (let at = 0; at < 600; at++) write(`${at}.json`, text(`s${at}`))
  await new Run(root).end()
  const waiting = new Run(join(root, 'nowhere'))
  await until('its absence said', () => waiting.status.unavailable !== undefined)
  await waiting.end()
})
