// SPDX-License-Identifier: Apache-2.0
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { NONE, type FlowUpdate } from '#lib/flows/flow.ts'
import { T0, windowOf, type Made } from '../made.ts'
import { send, Served, until } from '../served.ts'

function update(sequence: number, made: Made = {}): FlowUpdate {
  return { node: 'a', sequence, window: windowOf(made) }
}

const TO_NET: Made = {
  key: {
    dest: { type: 'Network', name: 'pub', namespace: NONE },
    destPort: 443,
    service: undefined,
    action: 'Deny',
    enforced: [
      {
        kind: 'EndOfTier',
        tier: 'default',
        namespace: '',
        name: '',
        action: 'Deny',
        rule: -1,
        trigger: { kind: 'NetworkPolicy', tier: 'default', namespace: 'shop', name: 'web-out' },
      },
    ],
  },
}

async function servedWith(...updates: readonly FlowUpdate[]): Promise<Served> {
  const served = await Served.start()
  await send(served.clients, updates)
  await served.it.store.flush()
  return served
}

/** Path and query exactly as they are, by hand. */
async function get(served: Served, target: string, method = 'GET'): Promise<{ status: number; type: string; body: unknown }> {
  const socket = connect(served.httpPort, '127.0.0.1')
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString()
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return {
    status: Number(head.split(' ')[1]),
    type: /^content-type: (.*)$/im.exec(head)?.[1] ?? '',
    body: JSON.parse(body) as unknown,
  }
}

describe('/flows', () => {
  test('a record, field by field', async () => {
    const details = { source: { labels: ['a=b', 'c=d'], addresses: ['10.0.0.1'] } }
    await using served = await servedWith(
      update(1, { ...details, counts: { packetsIn: 1, packetsOut: 2, bytesIn: 3, bytesOut: 4 } }),
      update(2, TO_NET),
    )
    const { status, type, body } = await get(served, '/flows?sortBy=DestName')
    expect([status, type]).toEqual([200, 'application/json'])
    const common = {
      source_name: 'web-*',
      source_namespace: 'shop',
      protocol: 'tcp',
      reporter: 'Src',
      dest_labels: '',
      dest_ips: [],
      drop_reason: '',
    }
    const times = { start_time: '2027-01-15T08:00:00Z', end_time: '2027-01-15T08:00:15Z' }
    const trigger = { kind: 'NetworkPolicy', name: 'web-out', namespace: 'shop', tier: 'default' }
    expect(body).toEqual({
      total: { totalPages: 1, totalResults: 2 },
      items: [
        {
          ...common,
          ...times,
          action: 'Allow',
          source_labels: 'a=b | c=d',
          dest_name: 'db-*',
          dest_namespace: 'data',
          dest_port: 5432,
          policies: {
            enforced: [{ ...trigger, action: 'Allow', policy_index: 0, rule_index: 3, trigger: null }],
            pending: null,
          },
          packets_in: 1,
          packets_out: 2,
          bytes_in: 3,
          bytes_out: 4,
          service: { namespace: 'data', name: 'db', port: 5432, port_name: 'pg' },
          source_ips: ['10.0.0.1'],
        },
        {
          ...common,
          ...times,
          action: 'Deny',
          source_labels: '',
          dest_name: 'PUBLIC NETWORK',
          dest_namespace: '-',
          dest_port: 443,
          policies: {
            enforced: [
              {
                kind: 'EndOfTier',
                name: '',
                namespace: '',
                tier: 'default',
                action: 'Deny',
                policy_index: 0,
                rule_index: -1,
                trigger: { ...trigger, action: 'ActionUnspecified', policy_index: 0, rule_index: 0, trigger: null },
              },
            ],
            pending: null,
          },
          packets_in: 0,
          packets_out: 0,
          bytes_in: 0,
          bytes_out: 0,
          service: null,
          source_ips: [],
        },
      ],
    })
  })

  test('the calls of existing clients: the filter as it is, escaped once, and escaped twice', async () => {
    await using served = await servedWith(update(1), update(2, TO_NET))
    const filters = '{"dest_names":[{"value":"PUBLIC NETWORK","type":"Exact"}],"unknown":1}'
    const raw = filters.replaceAll(' ', '%20')
    const once = encodeURIComponent(filters)
    const twice = encodeURIComponent(once)
    for (const text of [raw, once, twice, twice.replaceAll('%2520', '%2B')])
      for (const path of ['/flows', '/whisker-backend/flows'])
        expect(await get(served, `${path}?filters=${text}&startTimeGte=-3600`)).toMatchObject({
          status: 200,
          body: { items: [{ dest_name: 'PUBLIC NETWORK' }] },
        })
    const profile = '{"policies":[{"kind":"Profile"}],"reporter":"Src","actions":["Deny"]}'
    expect(await get(served, `/flows?filters=${profile}`)).toMatchObject({ body: { total: { totalResults: 0 }, items: null } })
    const tier = '{"policies":[{"tier":{"value":"defa","type":"Fuzzy"},"name":{"value":""}}],"pending_actions":null}'
    expect(await get(served, `/flows?filters=${tier}&pageSize=1`)).toMatchObject({ body: { total: { totalResults: 2, totalPages: 2 } } })
  })

  test.each([
    ['startTimeGte=soon', 'startTimeGte', '"soon" is no whole number'],
    ['startTimeGte=20&startTimeLt=10', 'startTimeLt', '10 is not after 20'],
    ['watch=maybe', 'watch', '"maybe" is neither true nor false'],
    ['sortBy=Bytes', 'sortBy', '"Bytes" is none of Time'],
    ['sortBy=Time&sortBy=Time', 'sortBy', 'only one'],
    ['page=-1', 'page', '-1 is none from 0'],
    ['filters={', 'filters', 'is no JSON'],
    ['filters=%25zz', 'filters', 'has an escape that is none'],
    ['filters=[]', 'filters', 'is no object'],
    ['filters={"actions":["Drop"]}', 'filters.actions[0]', '"Drop" is none of Allow, Deny, Pass'],
    ['filters={"source_names":[{"value":1}]}', 'filters.source_names[0].value', 'is no text'],
    ['filters={"source_names":[{"value":"a","type":"Regex"}]}', 'filters.source_names[0].type', '"Regex" is none of Exact, Fuzzy'],
    ['filters={"dest_ports":[{"value":"80"}]}', 'filters.dest_ports[0].value', 'is no number'],
    ['filters={"policies":[{"kind":""}]}', 'filters.policies[0].kind', '"" is none of'],
    ['filters={"reporter":["Src"]}', 'filters.reporter', '["Src"] is none of Src, Dst'],
  ])('%s is a bad question, told with its field', async (query, field, reason) => {
    await using served = await Served.start()
    const { status, body } = await get(served, `/flows?${query}`)
    expect([status, body]).toEqual([400, { field, error: expect.stringContaining(`${field}: ${reason}`) as unknown }])
  })

  test('other paths and methods', async () => {
    await using served = await Served.start()
    expect((await get(served, '/healthz')).status).toBe(404)
    expect((await get(served, '/whisker-backend')).status).toBe(404)
    expect((await get(served, '/flows', 'POST')).status).toBe(405)
  })

  test('a store that fails is 500, and told to the log alone', async () => {
    await using served = await Served.start()
    await served.it.stop()
    expect(await get(served, '/flows')).toMatchObject({ status: 500, body: { error: 'Internal Server Error' } })
  })
})

test('/flows-filter-hints', async () => {
  await using served = await servedWith(update(1), update(2, TO_NET))
  const hints = async (query: string) => (await get(served, `/flows-filter-hints?${query}`)).body
  const total = (totalResults: number, totalPages = 1) => ({ totalPages, totalResults })
  expect(await hints('type=DestName')).toEqual({ total: total(2), items: [{ value: 'db-*' }, { value: 'PUBLIC NETWORK' }] })
  expect(await hints('type=DestNamespace&pageSize=1')).toEqual({ total: total(2, 2), items: [{ value: 'Global' }] })
  expect(await hints('type=PolicyKind')).toEqual({ total: total(1), items: [{ value: 'NetworkPolicy' }] })
  expect(await hints('type=SourceName&page=3&pageSize=20')).toEqual({ total: total(1), items: [] })
  const none = '{"source_names":[{"value":"x","type":"Fuzzy"}]}'
  expect(await hints(`page=0&type=SourceName&pageSize=20&filters=${none}`)).toEqual({ total: total(0, 0), items: [] })
  expect(await hints('type=Unspecified')).toMatchObject({ field: 'type' })
})

/** What an EventSource reads. */
class Events implements Disposable {
  readonly #stop = new AbortController()
  readonly data: { readonly packets_in: number; readonly dest_port: number }[] = []
  readonly omitted: unknown[] = []
  lastId = ''
  comments = 0
  ended = false

  constructor(served: Served, query: string, lastId = '') {
    void this.#read(`http://127.0.0.1:${served.httpPort}/flows?watch=true&${query}`, lastId)
  }

  get ports(): readonly number[] {
    return this.data.map(({ dest_port }) => dest_port)
  }

  async #read(url: string, lastId: string): Promise<void> {
    try {
      const headers = lastId === '' ? {} : { 'last-event-id': lastId }
      const response = await fetch(url, { headers, signal: this.#stop.signal })
      let text = ''
      for await (const part of response.body ?? []) {
        const blocks = (text + Buffer.from(part as Uint8Array).toString()).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) this.#take(block)
      }
    } catch {
      // the test has ended it
    }
    this.ended = true
  }

  #take(block: string): void {
    if (block.startsWith(':')) this.comments++
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
    this.lastId = field('id') ?? this.lastId
    const data = field('data')
    if (data === undefined) return
    if (field('event') === 'omitted') this.omitted.push(JSON.parse(data))
    else this.data.push(JSON.parse(data) as (typeof this.data)[number])
  }

  [Symbol.dispose](): void {
    this.#stop.abort()
  }
}

describe('/flows?watch=true', () => {
  const port = (sequence: number, destPort: number, start = T0) =>
    update(sequence, { start, key: { destPort }, counts: { packetsIn: sequence } })

  test('what is kept, what comes, and after a break what came meanwhile: each once', async () => {
    await using served = await servedWith(port(1, 1, T0 - 30), port(2, 2))
    using first = new Events(served, 'startTimeGte=-60&filters={"protocols":[{"value":"tcp"}]}')
    await until(() => first.lastId !== '')
    expect(first.ports).toEqual([1, 2])
    await send(served.clients, [port(3, 3)])
    await until(() => first.data.length === 3)
    first[Symbol.dispose]()
    await until(() => served.aggregator.feed.followers === 0)
    await send(served.clients, [port(4, 4), port(7, 3)])
    using again = new Events(served, 'startTimeGte=-60', first.lastId)
    await until(() => again.data.length === 2)
    await send(served.clients, [port(8, 8)])
    await until(() => again.data.length === 3)
    // of what was told before, what was added
    expect(again.data.map(({ dest_port, packets_in }) => [dest_port, packets_in])).toEqual([
      [4, 4],
      [3, 4],
      [8, 8],
    ])
  })

  test('an id of another process begins with the window in which it was told', async () => {
    await using served = await servedWith(port(1, 1, T0 - 30), port(2, 2))
    using events = new Events(served, 'startTimeGte=-60', `0123.7.${T0 + 3}`)
    await until(() => events.lastId !== '')
    expect(events.ports).toEqual([2])
  })

  test('of too many the oldest windows are left out, and how many is told', async () => {
    await using served = await Served.start({ mostKept: 3 })
    await send(served.clients, [port(1, 1, T0 - 30), port(2, 2, T0 - 30), port(3, 3, T0 - 15), port(4, 4, T0 - 15), port(5, 5)])
    await served.it.store.flush()
    using events = new Events(served, 'startTimeGte=-60')
    await until(() => events.lastId !== '')
    expect([events.ports, events.omitted]).toEqual([[3, 4, 5], [{ count: 2 }]])
    expect(served.aggregator.count.omitted).toBe(2)
  })

  test('a heartbeat when nothing comes', async () => {
    await using served = await Served.start({ heartbeatMs: 20 })
    using events = new Events(served, '')
    await until(() => events.comments > 2)
    expect(events.data).toEqual([])
  })

  test('a client that does not read is cut off, and counted', async () => {
    await using served = await Served.start({ stuckMs: 300 })
    const socket = connect(served.httpPort, '127.0.0.1')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    socket.write('GET /flows?watch=true HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.pause()
    await until(() => served.aggregator.feed.followers === 1)
    let sequence = 1
    while (served.aggregator.feed.followers === 1 && sequence < 100_000)
      await send(
        served.clients,
        Array.from({ length: 2000 }, () => port(sequence++, sequence % 60_000)),
      )
    expect(served.aggregator.feed.followers).toBe(0)
    expect(served.aggregator.count.cutOff).toBe(1)
    socket.resume()
    await closed
  })

  test('streams end with the process', async () => {
    const served = await Served.start()
    using events = new Events(served, '')
    await until(() => events.lastId !== '')
    await served[Symbol.asyncDispose]()
    await until(() => events.ended)
  })
})
