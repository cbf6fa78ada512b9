// SPDX-License-Identifier: Apache-2.0
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { NO_FILTER } from '#flows/filter/filter.ts'
import { Feed } from '#flows/live/feed.ts'
import { follow, type Step } from '#flows/live/follow.ts'
import type { FlowStore } from '#flows/store/store.ts'
import { T0, TestStore, updateOf } from '../made.ts'

function stepsOf(store: FlowStore, feed: Feed): AsyncGenerator<Step, void> {
  const signal = AbortSignal.timeout(10_000)
  return follow({ store, feed, filter: NO_FILTER, from: T0 - 600, most: Infinity, quietMs: 10_000, signal })
}

function packetsIn(step: Step): readonly number[] {
  if (step.kind === 'kept') return step.records.map(({ window }) => window.counts.packetsIn)
  return step.kind === 'came' ? step.told.map(({ window }) => window.counts.packetsIn) : []
}

async function next(steps: AsyncGenerator<Step, void>): Promise<Step> {
  const { value } = await steps.next()
  if (value === undefined) throw new Error('it has ended')
  return value
}

async function followed(): Promise<{ readonly it: TestStore; readonly feed: Feed }> {
  const it = await TestStore.open()
  const feed = new Feed()
  it.store.listen((change) => {
    feed.take(change)
  })
  return { it, feed }
}

/** Calls `take` again and again, others between, until it is told to stop. */
function feeding(take: () => void): { readonly stop: () => Promise<void> } {
  const end = new AbortController()
  const isOver = (): boolean => end.signal.aborted
  const run = async (): Promise<void> => {
    while (!isOver()) {
      take()
      // a follower keeps 5,000
      await sleep(1)
    }
  }
  const running = run()
  return {
    stop: async () => {
      end.abort()
      await running
    },
  }
}

function sumOf(step: Step): number {
  return packetsIn(step).reduce((sum, packets) => sum + packets, 0)
}

test('a window that changes while older ones are told is told as it was, then what was added', async () => {
  const { it, feed } = await followed()
  onTestFinished(() => it[Symbol.asyncDispose]())
  it.store.take(updateOf('a', 1, { start: T0 - 300, counts: { packetsIn: 1 } }), '')
  it.store.take(updateOf('a', 2, { counts: { packetsIn: 10 } }), '')
  await it.store.flush()
  const steps = stepsOf(it.store, feed)
  expect(packetsIn(await next(steps))).toEqual([1])
  it.store.take(updateOf('a', 3, { counts: { packetsIn: 15 } }), '')
  await it.closeAll()
  expect(packetsIn(await next(steps))).toEqual([10])
  expect(await next(steps)).toEqual({ kind: 'caught-up', place: 2 })
  expect(packetsIn(await next(steps))).toEqual([5])
  await steps.return()
  expect(feed.followers).toBe(0)
})

test('who begins while updates come is told all of it, once', async () => {
  const { it, feed } = await followed()
  onTestFinished(() => it[Symbol.asyncDispose]())
  let sequence = 0
  const take = (): void => {
    it.store.take(updateOf('a', ++sequence, { counts: { packetsIn: sequence } }), '')
  }
  for (let round = 0; round < 10; round++) {
    let told = 0
    const fed = feeding(take)
    const steps = stepsOf(it.store, feed)
    let step = await next(steps)
    for (; step.kind !== 'caught-up'; step = await next(steps)) told += sumOf(step)
    await fed.stop()
    take()
    while (told < sequence) told += sumOf(await next(steps))
    expect(told).toBe(sequence)
    await steps.return()
  }
})

test('a window that is closed while updates come has the last of them', async () => {
  const { it } = await followed()
  onTestFinished(() => it[Symbol.asyncDispose]())
  let sequence = 0
  for (let round = 0; round < 10; round++) {
    const start = it.now - (it.now % 15)
    const first = sequence
    const fed = feeding(() => {
      it.store.take(updateOf('a', ++sequence, { start, counts: { packetsIn: sequence - first } }), '')
    })
    await sleep(5)
    await it.closeAll()
    await fed.stop()
    await it.store.flush()
    const rows = await it.store.read({ text: 'SELECT packets_in::INTEGER FROM store.windows WHERE start = ?', values: [start] })
    expect(rows).toEqual([[sequence - first]])
  }
})
