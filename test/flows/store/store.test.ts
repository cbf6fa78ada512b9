// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { NO_FILTER } from '#flows/filter/filter.ts'
import { listFlows } from '#flows/query/list.ts'
import { EVER } from '#flows/query/range.ts'
import type { FlowRecord } from '#flows/query/records.ts'
import type { Change, FlowStore } from '#flows/store/store.ts'
import { foreignOf, T0, TestStore, updateOf, WEB_TO_DB, windowOf } from '../made.ts'

async function listed(store: FlowStore): Promise<readonly FlowRecord[]> {
  const page = { index: 0, size: 0 }
  return (await listFlows((asked) => store.read(asked), { range: EVER, filter: NO_FILTER, page, sort: 'time' })).items
}

/** Of all that is kept, packets that have come in. */
async function packets(store: FlowStore): Promise<number> {
  return (await listed(store)).reduce((sum, { window }) => sum + window.counts.packetsIn, 0)
}

describe('an update is all that a node knows of a key and window', () => {
  test('one of a higher sequence takes its place, before and after it is written, others do not', async () => {
    await using it = await TestStore.open()
    const { store } = it
    const take = (sequence: number, packetsIn: number) => store.take(updateOf('a', sequence, { counts: { packetsIn } }), '')
    expect([take(1, 1), take(3, 30), take(2, 20), take(3, 31)]).toEqual(['new', 'replaced', 'known', 'known'])
    await store.flush()
    expect(await packets(store)).toBe(30)
    expect(take(4, 40)).toBe('replaced')
    await store.flush()
    expect(await packets(store)).toBe(40)
  })

  test('nodes, keys and windows are apart, and one record of a key has the sum', async () => {
    await using it = await TestStore.open()
    const { store } = it
    store.take(updateOf('a', 1, { counts: { packetsIn: 1 } }), '')
    store.take(updateOf('b', 1, { counts: { packetsIn: 10 } }), '')
    store.take(updateOf('a', 2, { start: T0 + 15, counts: { packetsIn: 100 } }), '')
    store.take(updateOf('a', 3, { key: { action: 'Deny' }, counts: { packetsIn: 1000 } }), '')
    await store.flush()
    const records = await listed(store)
    expect(records.map(({ window, last }) => [window.key.action, window.start - T0, last - T0, window.counts.packetsIn])).toEqual([
      ['Allow', 0, 15, 111],
      ['Deny', 0, 0, 1000],
    ])
  })

  test('what was told comes back whole, while its window is open, when it is closed, and after a restart', async () => {
    await using it = await TestStore.open()
    const trigger = { kind: 'StagedNetworkPolicy', tier: 't', namespace: 'n', name: 'p' } as const
    const window = windowOf({
      key: {
        pending: [{ kind: 'EndOfTier', tier: 't', namespace: '', name: '', action: 'Deny', rule: -1, trigger }],
        reason: 'flow_insert',
      },
      counts: { packetsIn: 1, packetsOut: 2, bytesIn: 2 ** 40, bytesOut: 4, started: 5, completed: 6, live: 7 },
      source: { labels: ['a=b', 'c=d'], addresses: ['10.0.0.1'], pods: ['web-1'], node: 'n1', owner: 'Deployment/web' },
      ports: [40000, 40001],
    })
    it.store.take({ ...updateOf('a', 1), window }, '')
    await it.store.flush()
    const whole = [{ id: 1, window, last: T0 }]
    expect(await listed(it.store)).toEqual(whole)
    await it.closeAll()
    expect(it.store.openRows).toBe(0)
    expect(await listed(it.store)).toEqual(whole)
    await it.stop()
    await it.start()
    expect(await listed(it.store)).toEqual(whole)
  })

  test('of several windows labels are those that all have, connections are counted once', async () => {
    await using it = await TestStore.open()
    const { store } = it
    const one = (start: number, labels: readonly string[], live: readonly [number, number]) =>
      store.take(updateOf('a', start, { start, source: { labels }, counts: { started: live[0], live: live[1] } }), '')
    one(T0, ['a=1', 'b=1'], [2, 5])
    one(T0 + 15, ['b=1', 'c=1'], [1, 4])
    one(T0 - 15, ['b=1', 'a=2'], [0, 3])
    await it.closeAll()
    const [record] = await listed(store)
    // three were there, and three more have come
    expect([record?.window.source.labels, record?.window.counts.live]).toEqual([['b=1'], 6])
  })
})

test('windows that were open when the process ended are open again; other clients tell theirs again', async () => {
  await using it = await TestStore.open()
  const { store } = it
  store.take(updateOf('a', 1, { start: T0 - 300, counts: { packetsIn: 1000 } }), '')
  store.take(updateOf('a', 2, { counts: { packetsIn: 1 }, ports: [7], dest: { labels: ['x=y'] } }), '')
  store.take(foreignOf({ counts: { packetsIn: 100 } }), '10.0.0.1')
  await it.stop()
  await it.start()
  expect(it.store.openRows).toBe(1)
  expect(await packets(it.store)).toBe(1001)
  const changes: Change[] = []
  it.store.listen((change) => changes.push(change))
  expect(it.store.take(updateOf('a', 2), '')).toBe('known')
  expect(it.store.take(updateOf('a', 3, { counts: { packetsIn: 5 } }), '')).toBe('replaced')
  expect(it.store.take(foreignOf({ counts: { packetsIn: 100 } }), '10.0.0.1')).toBe('new')
  expect(changes[0]?.before?.packetsIn).toBe(1)
  await it.closeAll()
  expect(await packets(it.store)).toBe(1105)
})

describe('windows that are closed', () => {
  test('a late update is taken when it is new or knows more, also after a restart', async () => {
    await using it = await TestStore.open()
    it.store.take(updateOf('a', 5, { counts: { packetsIn: 5 } }), '')
    await it.closeAll()
    await it.stop()
    await it.start()
    const late = async (node: string, sequence: number): Promise<number> => {
      expect(it.store.take(updateOf(node, sequence, { counts: { packetsIn: sequence } }), '')).toBe('late')
      await it.store.flush()
      return await packets(it.store)
    }
    expect(await late('a', 5)).toBe(5)
    expect(await late('a', 4)).toBe(5)
    expect(await late('a', 7)).toBe(7)
    expect(await late('b', 100)).toBe(107)
    expect(await late('b', 100)).toBe(107)
  })

  test('a window is closed with what came while it was written', async () => {
    await using it = await TestStore.open()
    const { store } = it
    for (let sequence = 1; sequence <= 50; sequence++) {
      store.take(updateOf('a', sequence, { counts: { packetsIn: sequence } }), '')
      if (sequence === 25) it.now += 150
      const writing = store.flush()
      store.take(updateOf('b', sequence, { counts: { packetsIn: sequence } }), '')
      await writing
    }
    await store.flush()
    expect(await packets(store)).toBe(100)
  })

  test('what is older than what is kept, or of the future, is not taken', async () => {
    await using it = await TestStore.open()
    const at = (start: number) => it.store.take(updateOf('a', 1, { start }), '')
    expect([at(it.now - 3601), at(it.now + 45), at(it.now + 30)]).toEqual(['untimely', 'untimely', 'new'])
  })
})

describe('clients that are none of our nodes', () => {
  test('parts of a window are added, what they say again is not, whichever connection it comes by', async () => {
    await using it = await TestStore.open()
    const { store } = it
    const say = (second: number, packetsIn: number, peer = '10.0.0.1') =>
      store.take(foreignOf({ start: T0 + second, counts: { packetsIn, live: 2 } }), peer)
    expect([say(1, 1), say(7, 10), say(1, 1), say(7, 11)]).toEqual(['new', 'replaced', 'known', 'replaced'])
    expect(say(1, 1, '10.0.0.2')).toBe('new')
    await store.flush()
    const [record] = await listed(store)
    expect([record?.window.start, record?.window.counts.packetsIn, record?.window.counts.live]).toEqual([T0, 23, 4])
    await it.closeAll()
    say(1, 1)
    await store.flush()
    expect(await packets(store)).toBe(23)
  })
})

describe('what is told to those who listen', () => {
  test('a cut gives what was there, and changes from then on', async () => {
    await using it = await TestStore.open()
    const { store } = it
    const changes: Change[] = []
    let end: (() => void) | undefined
    store.take(updateOf('a', 1, { counts: { packetsIn: 1 } }), '')
    const there = store.cut(
      () => {
        end = store.listen((change) => changes.push(change))
      },
      async (ask) => (await ask({ text: 'SELECT sum(packets_in)::DOUBLE FROM live', values: [] }))[0]?.[0],
    )
    await Promise.resolve()
    store.take(updateOf('a', 2, { counts: { packetsIn: 5 } }), '')
    const seen = await there
    const more = changes.reduce((sum, { window, before }) => sum + window.counts.packetsIn - (before?.packetsIn ?? 0), 0)
    expect(Number(seen) + more).toBe(5)
    end?.()
    store.take(updateOf('a', 3, {}), '')
    expect(changes.length).toBeLessThan(2)
  })
})

describe('retention', () => {
  test('windows, keys and details that are too old go, and come again as new ones', async () => {
    await using it = await TestStore.open()
    const { store } = it
    store.take(updateOf('a', 1, { key: { destPort: 1 }, source: { labels: ['old=1'] } }), '')
    store.take(updateOf('a', 2, { start: T0 + 15, key: { destPort: 2 } }), '')
    await it.closeAll()
    it.now = T0 + 3601
    expect(await store.retain()).toMatchObject({ oldest: T0 + 15, rows: 1, forgottenBySize: 0 })
    expect(store.keyCount).toBe(1)
    const rows = async (table: string) => (await store.read({ text: `SELECT count(*)::INTEGER FROM store.${table}`, values: [] }))[0]?.[0]
    expect([await rows('keys'), await rows('hits'), await rows('details')]).toEqual([1, 1, 1])
    store.take(updateOf('a', 3, { start: it.now - (it.now % 15), key: { destPort: 1 }, source: { labels: ['old=1'] } }), '')
    await store.flush()
    expect((await listed(store)).map(({ window }) => [window.key.destPort, window.source.labels])).toEqual([
      [1, ['old=1']],
      [2, []],
    ])
  })

  test('a file that is too large loses its oldest windows', async () => {
    await using it = await TestStore.open({ retentionBytes: 3_000_000, openSeconds: 0 })
    const { store } = it
    for (let window = 0; window < 100; window++) {
      const start = T0 + window * 15
      it.now = start + 10
      for (let port = 0; port < 3000; port++)
        store.take(
          updateOf('a', window * 3000 + port, { start, key: { destPort: port }, counts: { bytesIn: (port * 2654435761) % 2 ** 31 } }),
          '',
        )
      await store.flush()
    }
    await it.closeAll()
    const kept = await store.retain()
    expect(kept.bytes).toBeLessThanOrEqual(3_000_000)
    expect(kept.forgottenBySize).toBe(300_000 - kept.rows)
    expect(kept.rows).toBeGreaterThan(50_000)
    expect(await store.retain()).toMatchObject({ forgottenBySize: 0, rows: kept.rows })
  })
})

test('a file of other tables is not opened', async () => {
  await using it = await TestStore.open()
  await it.store.cut(
    () => undefined,
    async (ask) => await ask({ text: 'UPDATE store.schema SET version = 99', values: [] }),
  )
  await it.stop()
  await expect(it.start()).rejects.toThrow('has tables of version 99')
})

test('a quote in a name is a part of it', async () => {
  await using it = await TestStore.open()
  it.store.take(updateOf('a', 1, { key: { source: { ...WEB_TO_DB.source, name: "o'x" } } }), '')
  await it.store.flush()
  expect((await listed(it.store))[0]?.window.key.source.name).toBe("o'x")
})
