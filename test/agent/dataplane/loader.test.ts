// SPDX-License-Identifier: Apache-2.0
/** Which programs are loaded, and when those before them may go. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import type { Configuration } from '#agent/compile/desired.ts'
import { ProgramLoader } from '#agent/dataplane/loader.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { FakeGenerations } from '../../support/fakes/fake-generations.ts'
import { ListLog } from '../../support/fakes/list-log.ts'
import { interfaces } from '../../support/interfaces.ts'
import { KNOBS, SIZES } from '../../support/knobs.ts'

const PLAIN: Configuration = { knobs: KNOBS, mapSizes: SIZES }
const DSR: Configuration = { knobs: { ...KNOBS, dsr: true }, mapSizes: SIZES }
const OVERLAY: Configuration = { knobs: { ...KNOBS, overlay: true }, mapSizes: SIZES }

let clock: FakeClock
let kernel: FakeGenerations
let health: Health
let log: ListLog
let asksForProxy: number
let hasOtherProxy: boolean
/** programs that were said to be the first */
let firsts: string[]
let loader: ProgramLoader

beforeEach(() => {
  clock = new FakeClock()
  kernel = new FakeGenerations({ interfaces: interfaces(), clock })
  health = new Health(() => clock.wall())
  log = new ListLog()
  ;[asksForProxy, hasOtherProxy, firsts] = [0, false, []]
  loader = start()
})

function start(): ProgramLoader {
  return new ProgramLoader({
    ...{ generations: kernel, clock, log, health, onLoaded: () => undefined },
    onFirst: ({ generation }) => {
      firsts.push(generation.id)
      return Promise.resolve()
    },
    otherProxy: () => {
      asksForProxy++
      return Promise.resolve(hasOtherProxy)
    },
  })
}

/** As a pass does: what was loaded before is taken up, then what is wanted is loaded. */
async function pass(wanted: Configuration): Promise<void> {
  if (loader.isWaiting) await loader.takeUp()
  await loader.ensure(wanted)
}

/** Until it is loaded and taken up, or refused. */
async function load(wanted: Configuration): Promise<void> {
  await pass(wanted)
  await loader.finish()
  await pass(wanted)
}

function state() {
  const failing = health.report().conditions.flatMap(({ ok, reason }) => (ok ? [] : [reason]))
  return { loaded: loader.loaded?.generation.id, pinned: kernel.list(), settled: loader.settled, failing }
}

describe('programs of the first configuration', () => {
  test('are waited for, and taken up by the next pass', async () => {
    await loader.ensure(PLAIN)
    expect([loader.isWaiting, loader.loaded]).toEqual([true, undefined])
    await loader.takeUp()
    expect(state()).toEqual({ loaded: 'g0', pinned: ['g0'], settled: false, failing: [] })
    expect(log.events).toEqual(['programs.ready'])
  })

  test('that are refused are tried again, later each time', async () => {
    kernel.refusal = new Error('invalid argument')
    await pass(PLAIN)
    expect([state().failing, loader.retryMs()]).toEqual([['invalid argument'], 500])
    await pass(PLAIN)
    expect(kernel.attempts.length, 'it is not time').toBe(1)
    clock.advance(500)
    await pass(PLAIN)
    expect([kernel.attempts.length, loader.retryMs()]).toEqual([2, 1000])
    kernel.refusal = undefined
    clock.advance(1000)
    await load(PLAIN)
    expect([state().loaded, state().failing, loader.retryMs()]).toEqual(['g0', [], undefined])
  })

  test('may be begun before they are asked for, and are verified meanwhile', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    kernel.verified = promise
    await loader.begin(PLAIN)
    expect([loader.isWaiting, kernel.attempts.length]).toEqual([false, 1])
    resolve(undefined)
    await load(PLAIN)
    expect([state().loaded, kernel.attempts.length]).toEqual(['g0', 1])
    await loader.begin(DSR)
    expect(kernel.attempts.length, 'only the first').toBe(1)
  })

  test('that were begun and are refused hold nothing up, nor are they begun again', async () => {
    kernel.refusal = new Error('invalid argument')
    await loader.begin(PLAIN)
    await loader.finish()
    await loader.begin(PLAIN)
    expect([kernel.attempts.length, state().failing]).toEqual([1, ['invalid argument']])
  })

  test('that an agent before has left are adopted', async () => {
    await load(PLAIN)
    await loader.settle()
    loader = start()
    await load(PLAIN)
    expect([loader.loaded?.generation.adopted, kernel.list()]).toEqual([true, ['g0']])
  })
})

describe('programs of another configuration', () => {
  beforeEach(async () => {
    await load(PLAIN)
    await loader.settle()
    expect(state()).toEqual({ loaded: 'g0', pinned: ['g0'], settled: true, failing: [] })
  })

  test('are not waited for, and those before them stay pinned until every hook runs the new ones', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    kernel.verified = promise
    await pass(DSR)
    expect([state().loaded, loader.isWaiting]).toEqual(['g0', false])
    resolve(undefined)
    await loader.finish()
    await pass(DSR)
    expect(state()).toEqual({ loaded: 'g1', pinned: ['g0', 'g1'], settled: false, failing: [] })
    await loader.settle()
    expect(state()).toEqual({ loaded: 'g1', pinned: ['g1'], settled: true, failing: [] })
    expect(log.events.at(-1)).toBe('programs.retired')
  })

  test('that are refused leave those before them at work, and their flow table', async () => {
    kernel.refusal = new Error('no memory')
    const { flows } = loader
    await load(DSR)
    expect(state()).toEqual({ loaded: 'g0', pinned: ['g0'], settled: true, failing: ['no memory'] })
    expect([loader.flows === flows, flows?.maxEntries, loader.retryMs()]).toEqual([true, SIZES.conntrack, 500])
  })

  test('that are refused and not wanted any more are forgiven', async () => {
    kernel.refusal = new Error('no memory')
    await load(DSR)
    await load(PLAIN)
    expect([state().failing, loader.retryMs(), kernel.attempts.length]).toEqual([[], undefined, 2])
    kernel.refusal = undefined
    await load(DSR)
    expect(state().loaded, 'at once').toBe('g1')
  })

  test('are followed by those of a third that is wanted while they load', async () => {
    await pass(DSR)
    await pass(OVERLAY)
    await loader.finish()
    await load(OVERLAY)
    expect(kernel.attempts.map(({ knobs }) => [knobs.dsr, knobs.overlay])).toEqual([
      [false, false],
      [true, false],
      [false, true],
    ])
    expect([state().loaded, kernel.list()]).toEqual(['g2', ['g0', 'g1', 'g2']])
    await loader.settle()
    expect(kernel.list()).toEqual(['g2'])
  })

  test('keep their pins while others load', async () => {
    await load(DSR)
    await pass(OVERLAY)
    await loader.finish()
    await loader.settle()
    expect([kernel.list(), loader.settled]).toEqual([['g0', 'g1', 'g2'], false])
  })
})

describe('pins that another process removed', () => {
  beforeEach(() => load(PLAIN))

  test('of maps are made again at once', () => {
    const map = kernel.maps.get('np_ct')
    if (map !== undefined) map.isPinned = false
    expect([loader.checkPins(), map?.isPinned]).toEqual([['map np_ct'], true])
    expect(loader.checkPins()).toEqual([])
  })

  test('of programs are made again at once, and nothing is loaded', async () => {
    kernel.pinned.set('g0', 3)
    expect(loader.checkPins()).toEqual(['program tc-np_tail'])
    await load(PLAIN)
    expect([kernel.attempts.length, loader.checkPins()]).toEqual([1, []])
  })

  test('that cannot be made again have everything loaded again, until that works', async () => {
    kernel.isMounted = false
    expect(loader.checkPins()).toEqual(['generation g0'])
    await load(PLAIN)
    expect(state().failing).toEqual(['there is no BPF file system'])
    kernel.isMounted = true
    clock.advance(1000)
    await load(PLAIN)
    expect([state().failing, loader.checkPins()]).toEqual([[], []])
  })
})

describe('the flow table', () => {
  test('has no reader while flows may be in two tables', async () => {
    await load(PLAIN)
    expect(loader.flows).toBeUndefined()
    await loader.settle()
    expect(loader.flows?.maxEntries).toBe(SIZES.conntrack)
  })

  test('grows to twice its size with new programs, and stays so over a restart', async () => {
    await load(PLAIN)
    await loader.settle()
    expect([loader.grow(), loader.grow()], 'it is to grow already').toEqual([true, true])
    await load(PLAIN)
    await loader.settle()
    expect([loader.flows?.maxEntries, kernel.flowTableSize()]).toEqual([4000, 4000])
    loader = start()
    await load(PLAIN)
    expect(kernel.flowTableSize()).toBe(4000)
  })

  test('that cannot grow keeps its size, which is no failure of the programs', async () => {
    await load(PLAIN)
    await loader.settle()
    kernel.refusal = new Error('no memory')
    expect(loader.grow()).toBe(true)
    await load(PLAIN)
    expect([state().failing, loader.flows?.maxEntries, loader.retryMs()]).toEqual([[], 2000, undefined])
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', event: 'flow-table.resize-failed', fields: { entries: 2000 } })
  })
})

test('the first programs are told of before they are taken up, and no others', async () => {
  await load(PLAIN)
  expect(firsts).toEqual(['g0'])
  await load(DSR)
  await loader.settle()
  loader = start()
  await load(PLAIN)
  expect(firsts).toEqual(['g0'])
})

describe('connections of another proxy', () => {
  const until = (): number | undefined => kernel.rows(catalogue.np_state)[0]?.[1].takeover_until

  test('are taken over when it was there before our programs', async () => {
    hasOtherProxy = true
    await load(PLAIN)
    expect(until()).toBeGreaterThan(60_000)
    expect(log.events).toEqual(['programs.ready', 'takeover.begun'])
  })

  test('are not looked for where our programs were at work', async () => {
    await load(PLAIN)
    expect([asksForProxy, until()]).toEqual([1, undefined])
    loader = start()
    await load(PLAIN)
    expect(asksForProxy).toBe(1)
  })
})

test('handles are let go of with what is replaced, and with the loader', async () => {
  await load(PLAIN)
  await load(DSR)
  expect(kernel.handles).toBe(2)
  await loader.settle()
  expect(kernel.handles).toBe(1)
  await pass(OVERLAY)
  await loader.finish()
  loader[Symbol.dispose]()
  expect([kernel.handles, kernel.list()]).toEqual([0, ['g1', 'g2']])
})
