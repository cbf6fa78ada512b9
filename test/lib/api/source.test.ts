// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { PROTOBUF } from '#lib/api/decode/envelopes.ts'
import { ApiSource } from '#lib/api/source.ts'
import { systemClock, type Clock } from '#lib/base/clock.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { LastGoodFile } from '#lib/store/last-good.ts'
import { readOnce } from '#lib/store/read-once.ts'
import { framed } from '../../../bench/control/encode.ts'
import { until } from '../../../testkit/base/until.ts'
import { FakeServer, dribble, json, refuse, service } from './fake-server.ts'
import { SourceRun, type SourceRunOptions } from './source-run.ts'

const SERVICES = '/api/v1/services'
const POLICIES = '/apis/netplane.io/v3/globalnetworkpolicies'

let fake: FakeServer
beforeEach(async () => {
  fake = await FakeServer.start()
})
afterEach(async () => {
  await fake[Symbol.asyncDispose]()
})

function policy(name: string, action = 'Deny') {
  return { metadata: { name }, spec: { selector: "app == 'web'", types: ['Ingress'], ingress: [{ action }] } }
}

function run(options: Partial<SourceRunOptions> = {}): SourceRun {
  return new SourceRun({ server: fake.server, ...options })
}

describe('lists', () => {
  test('come in pages, and the mark when every kind is in', async () => {
    for (let at = 0; at < 1201; at++) fake.put(SERVICES, service(`s${at}`))
    let held = true
    fake.fault = ({ path }) => held && path === '/api/v1/nodes'
    await using source = run()
    await until('all services', () => source.objects.size === 1201)
    expect(source.synced).toBe(0)
    expect(fake.requests.filter((path) => path === SERVICES)).toHaveLength(5)
    held = false
    fake.cut()
    await source.untilSynced()
    expect(source.status).toEqual({ unavailable: undefined, problems: [] })
    expect(source.events).toHaveLength(1201)
  })

  test('of which a page is too late begin again, and lose nothing', async () => {
    for (let at = 0; at < 900; at++) fake.put(SERVICES, service(`s${at}`))
    let left = 1
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('continue') || left-- <= 0) return false
      fake.quietly(() => fake.delete(SERVICES, 'default/s1'))
      refuse(response, 410, 'Expired')
      return true
    }
    await using source = await run().untilSynced()
    expect(source.objects.size).toBe(899)
  })

  test.each([
    { what: 'that are refused come in pages all the same', status: 429, limits: ['250', '250', '250', '250'] },
    { what: 'whose pages are too late again and again come in one go', status: 410, limits: ['250', '250', '0', '0'] },
  ])('$what', async ({ status, limits }) => {
    const asked: (string | null)[] = []
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || query.has('watch')) return false
      asked.push(query.get('limit'))
      if (asked.length >= limits.length) return false
      refuse(response, status, 'Refused')
      return true
    }
    await using source = await run().untilSynced()
    expect(source.unavailable).toBeUndefined()
    expect(asked).toEqual(limits)
  })

  test('that take for ever are given up and asked for again', async () => {
    fake.put(SERVICES, service('web'))
    let slow = true
    fake.fault = ({ path, query }, response) => {
      if (!slow || path !== SERVICES || query.has('watch')) return false
      void dribble(response)
      return true
    }
    await using source = run({ patience: { pageMs: 50, graceMs: 1000 } })
    await until('the reason', () => source.unavailable !== undefined)
    expect(source.unavailable).toBe('GET /api/v1/services: no answer in time')
    slow = false
    await source.untilSynced()
    expect([...source.objects.keys()]).toEqual(['Service/default/web'])
    expect(source.unavailable).toBeUndefined()
  })

  test.each(['list', 'watch'])('that cannot be read as Protocol Buffers come as JSON from then on: %s', async (broken) => {
    fake.put(SERVICES, service('web'))
    const asked: string[] = []
    fake.fault = ({ path, query, accept }, response) => {
      const what = query.has('watch') ? 'watch' : 'list'
      if (path !== SERVICES) return false
      asked.push(`${what} ${accept.startsWith(PROTOBUF) ? 'either' : 'JSON'}`)
      if (what !== broken || !accept.startsWith(PROTOBUF)) return false
      response.writeHead(200, { 'content-type': PROTOBUF })
      response.end(framed(Buffer.from('no such object')))
      return true
    }
    await using source = await run().untilSynced()
    await until('a watch', () => asked.at(-1) === 'watch JSON')
    fake.put(SERVICES, service('more'))
    await source.untilThere('Service/default/more')
    expect(asked).toEqual(broken === 'list' ? ['list either', 'list JSON', 'watch JSON'] : ['list either', 'watch either', 'watch JSON'])
    expect(source.unavailable).toBeUndefined()
    expect(source.source.facts().get('Service')?.unreadable).toBe(1)
  })

  test('that are refused are reported with their reason and time, and tried again', async () => {
    let refused = true
    fake.fault = ({ path }, response) => {
      if (!refused || path !== '/api/v1/pods') return false
      refuse(response, 403, 'Forbidden')
      return true
    }
    const began = Date.now()
    await using source = run()
    await until('the reason', () => source.unavailable !== undefined)
    expect(source.unavailable).toBe('GET /api/v1/pods: made to fail: Forbidden')
    expect(source.status?.unavailable?.since).toBeGreaterThanOrEqual(began)
    expect(source.synced).toBe(0)
    refused = false
    await source.untilSynced()
    expect(source.unavailable).toBeUndefined()
  })
})

describe('watches', () => {
  test('tell what changes', async () => {
    await using source = await run().untilSynced()
    fake.put(SERVICES, service('web'))
    await source.untilThere('Service/default/web')
    fake.delete(SERVICES, 'default/web')
    await source.untilGone('Service/default/web')
    expect(source.source.facts().get('Service')).toMatchObject({ objects: 0, lists: 1, watches: 1, events: 2 })
  })

  test.each([
    ['end', () => fake.endWatches(SERVICES)],
    ['break off in the middle of an event', () => (fake.say(SERVICES, '{"type":"ADD'), fake.endWatches(SERVICES))],
    ['say what is no JSON', () => fake.say(SERVICES, '{"type":}\n')],
    ['say what is no event', () => fake.say(SERVICES, '"?"\n')],
    ['lose their connection', () => fake.cut()],
  ])('that %s go on from there', async (_, accident) => {
    fake.put(SERVICES, service('a'))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    fake.put(SERVICES, service('b'))
    await source.untilThere('Service/default/b')
    source.takeEvents()
    const { version } = fake
    fake.quietly(() => fake.put(SERVICES, service('c')))
    accident()
    await source.untilThere('Service/default/c')
    expect(source.takeEvents()).toEqual(['upsert Service/default/c'])
    expect(fake.requests.filter((request) => request.startsWith(SERVICES))).toEqual([
      SERVICES,
      expect.any(String),
      `${SERVICES} watch ${version}`,
    ])
  })

  test('remember the version of a bookmark', async () => {
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    fake.reach(999)
    fake.say(SERVICES, '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"999"}}}\n')
    fake.endWatches(SERVICES)
    await until('another one', () => fake.requests.includes(`${SERVICES} watch 999`))
    expect(source.events).toEqual([])
  })

  test.each([
    ['an event', false],
    ['a refusal', true],
  ])('whose version is too old, as %s says, list again and tell the difference only', async (_, asStatus) => {
    for (const name of ['a', 'b', 'c']) fake.put(SERVICES, service(name))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    source.takeEvents()
    fake.quietly(() => {
      fake.delete(SERVICES, 'default/a')
      fake.put(SERVICES, service('b', 81))
    })
    fake.oldest = Number(fake.version)
    if (asStatus)
      fake.fault = ({ query }, response) => {
        if (!query.has('watch') || Number(query.get('resourceVersion')) >= fake.oldest) return false
        refuse(response, 410, 'Gone')
        return true
      }
    fake.endWatches(SERVICES)
    await source.untilGone('Service/default/a')
    expect(source.takeEvents()).toEqual(['upsert Service/default/b', 'delete Service/default/a'])
    expect(source.unavailable).toBeUndefined()
  })

  test.each([
    ['an error', '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'],
    ['what is no event', '"?"'],
  ])('that tell of changes and of %s in one go lose none of them', async (_, last) => {
    fake.put(SERVICES, service('a'))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    const event = (type: string, name: string, version: number): string => {
      const object = service(name)
      return `${JSON.stringify({ type, object: { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } } })}\n`
    }
    // the same as the server has after that
    fake.quietly(() => {
      fake.put(SERVICES, service('b'))
      fake.delete(SERVICES, 'default/a')
    })
    const now = Number(fake.version)
    fake.say(SERVICES, `${event('ADDED', 'b', now - 1)}${event('DELETED', 'a', now)}${last}\n`)
    await until('the next watch', () => fake.requests.includes(`${SERVICES} watch ${now}`))
    expect([...source.objects.keys()]).toEqual(['Service/default/b'])
    expect(source.takeEvents()).toEqual(['upsert Service/default/a', 'upsert Service/default/b', 'delete Service/default/a'])
  })

  test('that end while a long object is read begin in front of it', async () => {
    const [RULES, GRACE_MS] = [200, 77_777]
    const deadlines: (() => void)[] = []
    let [steps, isReading] = [0, false]
    const clock: Clock = {
      ...systemClock,
      // every step has used up its time
      now: () => {
        if (isReading && ++steps === RULES / 2) for (const end of deadlines) end()
        return performance.now() + 1000 * steps
      },
      after: (ms, run) => {
        if (ms > GRACE_MS) deadlines.push(run)
        return systemClock.after(ms, run)
      },
    }
    const collection = '/apis/networking.k8s.io/v1/networkpolicies'
    await using source = await run({ clock, patience: { pageMs: 1000, graceMs: GRACE_MS } }).untilSynced()
    await until('the watch', () => fake.watching(collection) === 1)
    const asked = `${collection} watch ${fake.version}`
    isReading = true
    const ingress = Array.from({ length: RULES }, () => ({}))
    fake.put(collection, { metadata: { namespace: 'default', name: 'long' }, spec: { podSelector: {}, ingress } })
    await source.untilThere('KubernetesNetworkPolicy/default/long')
    expect(fake.requests.filter((request) => request === asked)).toHaveLength(2)
  })

  test('that fail are not begun again and again without a pause', async () => {
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch')) return false
      response.end()
      return true
    }
    await using source = await run({ backoff: { firstMs: 100, maxMs: 100 } }).untilSynced()
    const count = (): number => fake.requests.filter((request) => request.startsWith(`${SERVICES} watch`)).length
    await until('some', () => count() === 3)
    const began = performance.now()
    await until('some more', () => count() === 6)
    expect(performance.now() - began).toBeGreaterThan(200)
    expect(source.objects.size).toBe(0)
  })

  test('that fall silent are given up when they should have ended', async () => {
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch') || query.get('resourceVersion') !== '100') return false
      response.writeHead(200).flushHeaders()
      return true
    }
    await using source = await run({ watchSeconds: 0.1, patience: { pageMs: 1000, graceMs: 100 } }).untilSynced()
    fake.put(SERVICES, service('web'))
    fake.fault = () => false
    await source.untilThere('Service/default/web')
  })

  test('that the server refuses for a while say so from the second time on', async () => {
    fake.put(SERVICES, service('web'))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    fake.fault = ({ path }, response) => {
      if (path !== SERVICES) return false
      refuse(response, 500, 'InternalError')
      return true
    }
    fake.endWatches(SERVICES)
    await until('the reason', () => source.unavailable !== undefined)
    expect(source.unavailable).toBe('watch of Service: made to fail: InternalError: its last good state stays in force')
    fake.fault = () => false
    await until('the end of it', () => source.unavailable === undefined)
    expect(source.takeEvents()).toEqual(['upsert Service/default/web'])
  })
})

describe('kinds that the server does not have', () => {
  test('are no obstacle, and are looked for again', async () => {
    await using source = await run().untilSynced()
    fake.put(POLICIES, policy('p'))
    fake.groups.set('netplane.io/v3', ['globalnetworkpolicies'])
    await source.untilThere('GlobalNetworkPolicy/p')
    expect(source.synced).toBe(1)
    expect(fake.requests.filter((path) => path.startsWith('/apis/netplane.io/v3/tiers'))).toEqual([])
  })

  test('without NodeNetworks the source believes nothing', async () => {
    fake.fault = ({ path }, response) => {
      if (!path.endsWith('/nodenetworks')) return false
      json(response, 404, {})
      return true
    }
    await using source = run()
    await until('the reason', () => source.unavailable !== undefined)
    expect([source.unavailable, source.synced]).toEqual([expect.stringContaining('nodenetworks'), 0])
    fake.fault = () => false
    await source.untilSynced()
  })

  test('keep their objects unless the list of kinds says that they are gone', async () => {
    fake.groups.set('netplane.io/v3', ['globalnetworkpolicies'])
    fake.put(POLICIES, policy('p'))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(POLICIES) === 1)
    fake.fault = (_, response) => {
      json(response, 404, { message: 'I am a proxy' })
      return true
    }
    fake.endWatches(POLICIES)
    await until('the reason', () => source.unavailable !== undefined)
    expect(source.objects.has('GlobalNetworkPolicy/p')).toBe(true)
    fake.groups.delete('netplane.io/v3')
    fake.fault = () => false
    await source.untilGone('GlobalNetworkPolicy/p')
  })
})

describe('objects that cannot be used', () => {
  test('are reported with their place, and their last good versions stay', async () => {
    fake.put(SERVICES, service('web'))
    fake.put(SERVICES, service('bad', 'http'))
    await using source = await run().untilSynced()
    const wrong = (name: string): string =>
      `/api/v1/namespaces/default/services/${name}: Service default/${name}: spec.ports[0].port: must be 1..65535`
    expect(source.problems).toEqual([wrong('bad')])
    fake.put(SERVICES, service('web', 0))
    await until('the problem', () => source.problems.length === 2)
    expect(source.problems).toEqual([wrong('bad'), wrong('web')])
    const fields = ['web', 'none'].map((name) => ({ ref: `Service/default/${name}`, path: '', reason: '' }))
    expect(source.source.placesOf(fields)).toEqual(['/api/v1/namespaces/default/services/web', undefined])
    expect(source.takeEvents()).toEqual(['upsert Service/default/web'])
    fake.put(SERVICES, service('bad'))
    fake.delete(SERVICES, 'default/web')
    await until('no problem', () => source.problems.length === 0)
    expect(source.takeEvents()).toEqual(['upsert Service/default/bad', 'delete Service/default/web'])
  })

  test('keep their last good versions over a restart, where they allow or deny traffic', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-api-'))
    const path = join(folder, 'last-good.json')
    try {
      fake.groups.set('netplane.io/v3', ['globalnetworkpolicies'])
      fake.put(POLICIES, policy('good'))
      fake.put(POLICIES, policy('never', 'Maybe'))
      const actions = (source: SourceRun, name: string): unknown => {
        const event = source.objects.get(`GlobalNetworkPolicy/${name}`)
        return event?.object.kind === 'GlobalNetworkPolicy' ? [event.object.closed, event.object.ingress?.length] : undefined
      }
      {
        await using source = await run({ lastGood: new LastGoodFile(path) }).untilSynced()
        expect([actions(source, 'good'), actions(source, 'never')]).toEqual([
          [undefined, 1],
          [true, 0],
        ])
        await until('the watch', () => fake.watching(POLICIES) === 1)
        fake.put(POLICIES, policy('good', 'Maybe'))
        await until('the problem', () => source.problems.length === 2)
        expect(actions(source, 'good')).toEqual([undefined, 1])
        expect(source.status?.kept).toEqual(['GlobalNetworkPolicy/good'])
      }
      expect(readFileSync(path, 'utf8')).toContain('/apis/netplane.io/v3/globalnetworkpolicies/good')
      {
        await using source = await run({ lastGood: new LastGoodFile(path) }).untilSynced()
        expect(actions(source, 'good')).toEqual([undefined, 1])
        expect(source.problems).toHaveLength(2)
        expect(source.status?.kept).toEqual(['GlobalNetworkPolicy/good'])
        await until('the watch', () => fake.watching(POLICIES) === 1)
        fake.delete(POLICIES, '/good')
        await source.untilGone('GlobalNetworkPolicy/good')
      }
      await using source = await run({ lastGood: new LastGoodFile(path) }).untilSynced()
      expect([...source.objects.keys()]).toEqual(['GlobalNetworkPolicy/never'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

test('a source that is read once ends with the mark', async () => {
  fake.put(SERVICES, service('web'))
  const { events, unavailable } = await readOnce(new ApiSource({ node: 'n1', server: fake.server }))
  expect([events.length, unavailable]).toEqual([1, undefined])
})

test.each([
  ['is written', '::ffff:127.0.0.1', undefined],
  ['is written as a URL has it', '::ffff:7f00:1', undefined],
  ['is what its name means', 'api.example', ['::ffff:127.0.0.1']],
])('a mapped address that %s is known as the IPv4 address that it is', async (_, host, answers) => {
  const asked: string[] = []
  const resolving = answers === undefined ? {} : { resolve: () => Promise.resolve(answers) }
  const options = { server: { ...fake.server, host }, ...resolving, beforeConnect: (address: string) => asked.push(address) }
  await using source = await run(options).untilSynced()
  expect(source.source.servers().addresses).toEqual([parseAddr('127.0.0.1')])
  expect(new Set(asked)).toEqual(new Set(['127.0.0.1']))
})

test('the source gives up a list whose pages repeat, and reports it', async () => {
  fake.fault = ({ path, query }, response) => {
    if (path !== SERVICES || query.has('watch')) return false
    json(response, 200, { metadata: { resourceVersion: '100', continue: 'more' }, items: [] })
    return true
  }
  await using source = run({ backoff: { firstMs: 500, maxMs: 5000 } })
  await until('a reason', () => source.unavailable !== undefined)
  expect(source.unavailable).toMatch(/list of Service: its pages do not end/)
})

test('the client gives up a list after 4000 pages', { timeout: 120_000 }, async () => {
  let pages = 0
  fake.fault = ({ path }, response) => {
    if (path !== SERVICES) return false
    json(response, 200, { metadata: { resourceVersion: '100', continue: String(++pages) }, items: [] })
    return true
  }
  await using client = new ApiClient({ server: fake.server })
  await expect(client.list({ apiVersion: 'v1', kind: 'Service', plural: 'services' })).rejects.toThrow(
    /list of Service: more than 4000 pages/,
  )
  expect(pages).toBe(4000)
})
