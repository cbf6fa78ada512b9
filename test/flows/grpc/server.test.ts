// SPDX-License-Identifier: Apache-2.0
import { connect as connectHttp2 } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { PolicyMatchSchema, type Flow, type FlowListResult, type FlowResult } from '#lib/flows/wire/goldmane_pb.ts'
import { field, hex, UPDATE_OF_332 } from '../../lib/flows/wire/bytes.ts'
import { T0, WEB_TO_DB, windowOf, type Made } from '../made.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { clientsOf, send, Served, until } from '../served.ts'

function update(sequence: number, made: Made = {}, node = 'a'): FlowUpdate {
  return { node, sequence, window: windowOf(made) }
}

function summary({ flows }: Pick<FlowListResult, 'flows'>): readonly unknown[] {
  return flows.map(({ flow }) => of(flow))
}

function of(flow: Flow | undefined): readonly unknown[] {
  return [flow?.Key?.sourceName, Number(flow?.Key?.destPort), Number(flow?.startTime) - T0, Number(flow?.endTime) - T0, flow?.packetsIn]
}

async function codeOf(asked: Promise<unknown>): Promise<readonly unknown[]> {
  try {
    await asked
    return ['answered']
  } catch (thrown) {
    const { code, rawMessage } = ConnectError.from(thrown)
    return [code, rawMessage]
  }
}

async function listOf<T>(stream: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const one of stream) all.push(one)
  return all
}

describe('FlowCollector.Connect', () => {
  test('each update has its receipt, and a replay over a new connection counts once', async () => {
    await using served = await Served.start()
    const updates = [update(1, { counts: { packetsIn: 1 } }), update(2, { start: T0 + 15, counts: { packetsIn: 10 } })]
    expect(await send(served.clients, updates, 7)).toBe(2)
    using again = clientsOf(served.grpcPort)
    expect(await send(again, [...updates, update(3, { counts: { packetsIn: 2 } })], 8)).toBe(3)
    await served.it.store.flush()
    expect(summary(await served.clients.flows.list({}))).toEqual([['web-*', 5432, 0, 30, 12n]])
    expect(served.aggregator.count.updates).toMatchObject({ new: 2, replaced: 1, known: 2 })
    expect(served.aggregator.nodes.get('a')).toEqual({ lost: 8, seen: served.it.now * 1000 })
  })

  test('bytes of a node of 3.32 are taken, and what cannot be read has its receipt too', async () => {
    await using served = await Served.start()
    served.it.now = 123456789 + 5
    const messages = [UPDATE_OF_332, new Uint8Array(), UPDATE_OF_332, field('0a', hex('10 01'))]
    expect(await sendBytes(served.grpcPort, messages)).toEqual({ status: '0', receipts: 4 })
    await served.it.store.flush()
    const { flows } = await served.clients.flows.list({})
    expect(flows.map(({ flow }) => [flow?.Key?.destServicePortName, flow?.startTime, flow?.bytesIn])).toEqual([['pg', 123456780n, 300n]])
    expect(served.aggregator.count).toMatchObject({ updates: { new: 1, known: 1, unreadable: 2 }, unknownHits: 2 })
  })

  test('what is no message ends that connection alone', async () => {
    await using served = await Served.start()
    expect(await sendBytes(served.grpcPort, [hex('ff ff ff ff')])).toMatchObject({ receipts: 0 })
    expect(await send(served.clients, [update(1)])).toBe(1)
  })
})

/** Frames of gRPC by hand: a byte, a length of 4, the message. */
async function sendBytes(port: number, messages: readonly Uint8Array[]): Promise<{ status: unknown; receipts: number }> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/goldmane.FlowCollector/Connect',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  for (const message of messages) {
    const head = Buffer.alloc(5)
    head.writeUInt32BE(message.length, 1)
    stream.write(Buffer.concat([head, message]))
  }
  stream.end()
  let bytes = 0
  let status: unknown
  stream.on('data', (part: Buffer) => (bytes += part.length))
  for (const event of ['response', 'trailers'])
    stream.on(event, (headers: Record<string, unknown>) => (status = headers['grpc-status'] ?? status))
  await new Promise((resolve) => stream.once('close', resolve))
  session.destroy()
  return { status, receipts: bytes / 5 }
}

describe('Flows.List', () => {
  test('sorts, pages and times', async () => {
    await using served = await Served.start()
    const named = (name: string, start: number, sequence: number) =>
      update(sequence, { start, key: { source: { ...WEB_TO_DB.source, name } }, counts: { packetsIn: sequence } })
    await send(served.clients, [named('b', T0, 1), named('c', T0 - 30, 2), named('a', T0 - 15, 3), named('a', T0, 4)])
    await served.it.store.flush()
    const { flows } = served.clients
    const names = async (asked: Parameters<typeof flows.list>[0]) => {
      const { meta, flows: found } = await flows.list(asked)
      return [found.map(({ flow }) => `${flow?.Key?.sourceName ?? ''}${String(flow?.packetsIn)}`), meta?.totalPages, meta?.totalResults]
    }
    expect(await names({})).toEqual([['b1', 'a7', 'c2'], 1n, 3n])
    expect(await names({ sortBy: [{ sortBy: 4 }], pageSize: 2n })).toEqual([['a7', 'b1'], 2n, 3n])
    expect(await names({ sortBy: [{ sortBy: 4 }], pageSize: 2n, page: 1n })).toEqual([['c2'], 2n, 3n])
    expect(await names({ pageSize: 2n, page: 5n })).toEqual([[], 2n, 3n])
    // a window that ends behind the end is not of the time
    expect(await names({ startTimeLt: BigInt(T0) })).toEqual([['a3', 'c2'], 1n, 2n])
    expect(await names({ startTimeGte: -10n })).toEqual([['b1', 'a4'], 1n, 2n])
    expect(await names({ startTimeGte: BigInt(T0), startTimeLt: BigInt(T0 + 14) })).toEqual([[], 1n, 0n])
  })

  test('filters, also those of 3.31', async () => {
    await using served = await Served.start()
    await send(served.clients, [update(1), update(2, { key: { enforced: [], destPort: 80 } })])
    await served.it.store.flush()
    const policy = create(PolicyMatchSchema, { tier: new TextEncoder().encode('default') })
    expect(toBinary(PolicyMatchSchema, policy)).toEqual(field('12', new TextEncoder().encode('default')))
    expect(summary(await served.clients.flows.list({ filter: { policies: [policy] } }))).toEqual([['web-*', 5432, 0, 15, 0n]])
  })

  test.each([
    ['two sorts', { sortBy: [{}, {}] }, 'sort_by: only one'],
    ['a time that ends before it begins', { startTimeGte: 10n, startTimeLt: 10n }, 'start_time_lt: 10 is not after 10'],
    ['a page before the first', { page: -1n }, 'page: -1 is no page'],
    ['an action that is none', { filter: { actions: [0 as const] } }, 'filter.actions[0]: 0 is none of 1, 2, 3'],
  ])('%s is the error of the client', async (_title, asked, reason) => {
    await using served = await Served.start()
    expect(await codeOf(served.clients.flows.list(asked))).toEqual([Code.InvalidArgument, reason])
  })
})

describe('Flows.Stream', () => {
  /** Runs while `count` results come. */
  async function take(stream: AsyncIterable<FlowResult>, count: number): Promise<readonly unknown[]> {
    const all = []
    for await (const { flow } of stream) {
      all.push(of(flow))
      if (all.length === count) break
    }
    return all
  }

  test('what was kept, window by window, then what comes: each packet once', async () => {
    await using served = await Served.start()
    const { clients, it } = served
    await send(clients, [update(1, { start: T0 - 150, counts: { packetsIn: 1 } }), update(2, { counts: { packetsIn: 10 } })])
    await it.store.flush()
    const seen = take(clients.flows.stream({ startTimeGte: -600n }), 4)
    await until(() => served.aggregator.feed.followers === 1)
    const rest = [
      update(3, { counts: { packetsIn: 15 } }), // 5 more
      update(4, { counts: { packetsIn: 15 } }), // nothing more
      update(5, { start: T0 - 15, key: { destPort: 1 }, counts: { packetsIn: 100 } }),
    ]
    await send(clients, rest)
    expect(await seen).toEqual([
      ['web-*', 5432, -150, -135, 1n],
      ['web-*', 5432, 0, 15, 10n],
      ['web-*', 5432, 0, 15, 5n],
      ['web-*', 1, -15, 0, 100n],
    ])
    await until(() => served.aggregator.feed.followers === 0)
  })

  test('of 0 there is nothing but what comes, as the filter says, at once', async () => {
    await using served = await Served.start()
    const { clients } = served
    await send(clients, [update(1, { counts: { packetsIn: 1 } })])
    await withinBestOfThree(2000, async (tries) => {
      const [other, wanted] = [1, 2 * tries]
      const seen = take(clients.flows.stream({ filter: { destPorts: [{ port: BigInt(wanted) }] } }), 1)
      await until(() => served.aggregator.feed.followers === 1)
      const begun = performance.now()
      await send(clients, [update(2 * tries, { key: { destPort: other } }), update(2 * tries + 1, { key: { destPort: wanted } })])
      expect(await seen).toEqual([['web-*', wanted, 0, 15, 0n]])
      const took = performance.now() - begun
      await until(() => served.aggregator.feed.followers === 0)
      return took
    })
  })

  test('there are 100 at most', async () => {
    await using served = await Served.start()
    const stop = new AbortController()
    const all = Array.from({ length: 100 }, () => codeOf(listOf(served.clients.flows.stream({}, { signal: stop.signal }))))
    await until(() => served.aggregator.feed.followers === 100)
    expect(await codeOf(listOf(served.clients.flows.stream({})))).toEqual([Code.ResourceExhausted, '100 streams are open'])
    stop.abort()
    await Promise.all(all)
    await until(() => served.aggregator.feed.followers === 0)
  })
})

test('Flows.FilterHints', async () => {
  await using served = await Served.start()
  const { clients, it } = served
  const end = { kind: 'EndOfTier', tier: 'sec', namespace: '', name: '', action: 'Deny', rule: -1 } as const
  const trigger = { kind: 'GlobalNetworkPolicy', tier: 'sec', namespace: '', name: 'guard' } as const
  await send(clients, [
    update(1),
    update(2, { key: { source: { ...WEB_TO_DB.source, name: 'api' }, enforced: [{ ...end, trigger }] } }),
    update(3, { start: T0 - 600, key: { source: { ...WEB_TO_DB.source, name: 'old' } } }),
    update(4, { key: { enforced: [{ ...end, kind: 'Profile', tier: '', name: 'kns.shop' }] } }),
  ])
  await it.store.flush()
  const hints = async (asked: Parameters<typeof clients.flows.filterHints>[0]) => {
    const { meta, hints: found } = await clients.flows.filterHints(asked)
    return [found.map(({ value }) => value), meta?.totalPages, meta?.totalResults]
  }
  expect(await hints({ type: 2 })).toEqual([['api', 'old', 'web-*'], 1n, 3n])
  expect(await hints({ type: 2, startTimeGte: -60n })).toEqual([['api', 'web-*'], 1n, 2n])
  expect(await hints({ type: 2, pageSize: 2n, page: 1n })).toEqual([['web-*'], 2n, 3n])
  expect(await hints({ type: 7 })).toEqual([['GlobalNetworkPolicy', 'NetworkPolicy'], 1n, 2n])
  expect(await hints({ type: 6 })).toEqual([['guard', 'web-out'], 1n, 2n])
  expect(await hints({ type: 5, filter: { sourceNames: [{ value: 'ap', type: 1 }] } })).toEqual([['sec'], 1n, 1n])
  expect(await codeOf(clients.flows.filterHints({}))).toEqual([Code.InvalidArgument, 'type: 0 is none of 1, 2, 3, 4, 5, 6, 7, 8'])
})

describe('Statistics.List', () => {
  test('by policy and by rule, with the rule that it was', async () => {
    await using served = await Served.start()
    const staged = { kind: 'StagedNetworkPolicy', tier: 'default', namespace: 'shop', name: 'draft', action: 'Deny', rule: 0 } as const
    const [hit] = WEB_TO_DB.enforced
    if (hit === undefined) throw new Error('no hit')
    const counts = { packetsIn: 1, packetsOut: 2, bytesIn: 30, bytesOut: 40, started: 1, live: 3 }
    await send(served.clients, [
      update(1, { counts }),
      update(2, { start: T0 - 15, counts, key: { pending: [staged, hit] } }),
      update(3, { counts, key: { reporter: 'Dst', enforced: [{ ...hit, rule: 7 }] } }),
    ])
    await served.it.store.flush()
    const ask = async (asked: Parameters<typeof served.clients.statistics.list>[0]) =>
      (await listOf(served.clients.statistics.list(asked))).map(({ policy, direction, allowedIn, allowedOut, deniedIn, deniedOut, x }) => [
        `${policy?.name ?? ''} ${String(policy?.ruleIndex)} ${String(direction)}`,
        [allowedIn, allowedOut, deniedIn, deniedOut, x.map((start) => start - BigInt(T0))].map(String),
      ])
    expect(await ask({})).toEqual([
      ['web-out 0 0', ['3', '6', '0', '0', '']],
      ['draft 0 0', ['0', '0', '1', '2', '']],
    ])
    expect(await ask({ groupBy: 1, type: 1 })).toEqual([
      ['web-out 3 2', ['60', '80', '0', '0', '']],
      ['web-out 7 1', ['30', '40', '0', '0', '']],
      ['draft 0 2', ['0', '0', '30', '40', '']],
    ])
    expect(await ask({ timeSeries: true, policyMatch: { kind: 6 } })).toEqual([['web-out 0 0', ['1,2', '2,4', '0,0', '0,0', '-15,0']]])
    expect(await ask({ groupBy: 1, type: 2, policyMatch: { action: 1 } })).toEqual([
      ['web-out 3 2', ['0', '6', '0', '0', '']],
      ['web-out 7 1', ['3', '0', '0', '0', '']],
    ])
    expect(await ask({ startTimeLt: BigInt(T0 - 600) })).toEqual([])
  })
})
