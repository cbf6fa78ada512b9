// SPDX-License-Identifier: Apache-2.0
/** An API server whose store was restored from a backup, and errors that only a list cures. Layer: test. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isBelow } from '#lib/api/watch/version-history.ts'
import { until } from '../../../../testkit/base/until.ts'
import { FakeServer, json, refuse, service } from '../fake-server.ts'
import { SourceRun } from '../source-run.ts'

const SERVICES = '/api/v1/services'
const NAMESPACES = '/api/v1/namespaces'
const KINDS = [SERVICES, NAMESPACES]

let fake: FakeServer
beforeEach(async () => {
  fake = await FakeServer.start()
})
afterEach(async () => {
  await fake[Symbol.asyncDispose]()
})

async function watching(): Promise<SourceRun> {
  const source = await new SourceRun({ server: fake.server }).untilSynced()
  await until('the watches', () => KINDS.every((kind) => fake.watching(kind) === 1))
  return source
}

/** Lists of the collection, pages and all. */
function lists(collection: string): number {
  return fake.requests.filter((request) => request === collection).length
}

test.each([
  ['9', '10', true],
  ['10', '9', false],
  ['10', '10', false],
  ['99999999999999999998', '99999999999999999999', true],
  ['', '10', false],
  ['9', 'a10', false],
  ['9a', '10', false],
  ['09', '10', false],
  ['-1', '10', false],
])('version %j is before %j: %j', (version, other, expected) => {
  expect(isBelow(version, other)).toBe(expected)
})

describe('objects that the server no longer has are gone, and those that it has again are back,', () => {
  /** Of two services one is made after the backup, and one is deleted. */
  async function withBackup(): Promise<{ readonly source: SourceRun; readonly restore: () => void }> {
    fake.put(SERVICES, service('old'))
    fake.put(NAMESPACES, { metadata: { name: 'old' } })
    const source = await watching()
    const restore = fake.backUp()
    fake.put(NAMESPACES, { metadata: { name: 'new' } })
    fake.put(SERVICES, service('new'))
    fake.delete(SERVICES, 'default/old')
    await source.untilGone('Service/default/old')
    await source.untilThere('Namespace/new')
    return { source, restore }
  }

  async function untilRestored(source: SourceRun): Promise<void> {
    await source.untilThere('Service/default/old')
    await source.untilGone('Service/default/new')
    await source.untilGone('Namespace/new')
    expect(source.unavailable).toBeUndefined()
  }

  test('after its connections ended, though its watches say nothing', async () => {
    const { restore, ...made } = await withBackup()
    await using source = made.source
    fake.quietly(restore)
    fake.cut()
    await untilRestored(source)
  })

  test('after its watches ended before they were due', async () => {
    const { restore, ...made } = await withBackup()
    await using source = made.source
    fake.quietly(restore)
    for (const kind of KINDS) fake.endWatches(kind)
    await untilRestored(source)
  })

  test.each(['BOOKMARK', 'MODIFIED'])('after a %s of a version before, of one kind', async (type) => {
    const { restore, ...made } = await withBackup()
    await using source = made.source
    fake.quietly(restore)
    const object = { ...service('old'), metadata: { namespace: 'default', name: 'old', resourceVersion: '101' } }
    fake.say(SERVICES, `${JSON.stringify({ type, object })}\n`)
    await untilRestored(source)
  })

  test('after a list of a version before, of one kind', async () => {
    const { restore, ...made } = await withBackup()
    await using source = made.source
    fake.quietly(restore)
    fake.say(SERVICES, `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })}\n`)
    await untilRestored(source)
  })

  test('an object is gone also where another object has its version by now', async () => {
    fake.put(SERVICES, service('web', 80))
    await using source = await watching()
    const restore = fake.backUp()
    fake.put(SERVICES, service('web', 81))
    fake.put(SERVICES, service('later'))
    await source.untilThere('Service/default/later')
    fake.quietly(() => {
      restore()
      fake.put(SERVICES, service('web', 82))
    })
    fake.cut()
    await source.untilGone('Service/default/later')
    const web = source.objects.get('Service/default/web')
    expect(JSON.stringify(web)).toContain('82')
  })
})

test('a server whose versions are no numbers is not taken for one that went back', async () => {
  await using source = await watching()
  const object = { ...service('odd'), metadata: { namespace: 'default', name: 'odd', resourceVersion: 'a1' } }
  fake.say(SERVICES, `${JSON.stringify({ type: 'ADDED', object })}\n`)
  await source.untilThere('Service/default/odd')
  fake.say(SERVICES, `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } } })}\n`)
  await sleep(200)
  expect(lists(SERVICES)).toBe(1)
})

test('a watch that ends when it is due asks for the next one, and once for all which version the server is at', async () => {
  fake.fault = ({ path, query }, response) => {
    if (path !== SERVICES || !query.has('watch')) return false
    void sleep(Number(query.get('timeoutSeconds')) * 1000).then(() => response.end())
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    return true
  }
  await using source = await new SourceRun({ server: fake.server, watchSeconds: 6 }).untilSynced()
  const asked = (): number => fake.requests.filter((request) => request.startsWith(`${SERVICES} watch`)).length
  await until('two watches', () => asked() >= 2)
  expect([lists(SERVICES), lists(NAMESPACES)]).toEqual([1, 2])
  expect(source.unavailable).toBeUndefined()
})

test('a bookmark far ahead makes no kind deaf, though its watches end when they are due', async () => {
  fake.fault = ({ path, query }, response) => {
    if (path !== SERVICES || !query.has('watch')) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    if (lists(SERVICES) === 1)
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '1000000000' } } })}\n`)
    response.flushHeaders()
    void sleep(Number(query.get('timeoutSeconds')) * 1000).then(() => response.end())
    return true
  }
  await using source = await new SourceRun({ server: fake.server, watchSeconds: 2 }).untilSynced()
  fake.put(SERVICES, service('new'))
  await source.untilThere('Service/default/new')
})

describe('an error that only a list cures leads to one:', () => {
  const tooLarge = { kind: 'Status', code: 504, reason: 'Timeout', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } }

  test.each<[string, object, number]>([
    ['the version is too large', tooLarge, 1],
    ['the request is wrong', { kind: 'Status', code: 400, reason: 'BadRequest' }, 1],
    ['the server fails, twice', { kind: 'Status', code: 500, reason: 'InternalError' }, 2],
  ])('%s, as an event', async (_, object, times) => {
    let failed = 0
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch') || failed >= times) return false
      failed++
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return true
    }
    await using source = await new SourceRun({ server: fake.server }).untilSynced()
    await until('the list', () => lists(SERVICES) === 2)
    await until('the watch', () => fake.watching(SERVICES) === 1)
    expect(source.unavailable).toBeUndefined()
  })

  test.each([400, 422, 404])('%j as HTTP', async (status) => {
    let failed = 0
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch') || failed++ > 0) return false
      refuse(response, status, 'Invalid')
      return true
    }
    await using source = await new SourceRun({ server: fake.server }).untilSynced()
    await until('the list', () => lists(SERVICES) === 2)
    expect(source.synced).toBe(1)
  })

  /** Watches begin and end with this, until there was a list. */
  async function curedByList(answer: (response: ServerResponse) => void): Promise<void> {
    await using source = await watching()
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch') || lists(SERVICES) > 1) return false
      answer(response)
      return true
    }
    fake.quietly(() => fake.put(SERVICES, service('late')))
    fake.endWatches(SERVICES)
    await source.untilThere('Service/default/late')
    await until('the watch', () => fake.watching(SERVICES) === 1)
    expect(lists(SERVICES)).toBe(2)
    await until('the end of it', () => source.unavailable === undefined)
  }

  const event = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`
  const failed = event('ERROR', { kind: 'Status', code: 500, reason: 'InternalError' })

  test.each<[string, () => string]>([
    ['of an error behind a bookmark', () => event('BOOKMARK', { metadata: { resourceVersion: fake.version } }) + failed],
    ['of an error that says nothing', () => event('ERROR', { message: 'no leader' })],
    ['without an object', () => event('ADDED', null)],
    ['that is no JSON', () => '{"type": \n'],
  ])('each watch ends with an event %s', async (_, text) => {
    await curedByList((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(text())
    })
  })

  test('a watch that cannot begin leads to a list', async () => {
    await curedByList((response) => {
      refuse(response, 500, 'InternalError')
    })
  })

  test('an error that comes again does not lead to a list each time', async () => {
    await using source = await watching()
    let asked = 0
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch')) return false
      asked++
      refuse(response, 500, 'InternalError')
      return true
    }
    fake.endWatches(SERVICES)
    await until('many', () => asked === 17)
    // after 2, 4, 8 and 16
    expect(lists(SERVICES)).toBe(5)
    // the list before has succeeded: only this watch's answer says it again
    await until('the reason', () => source.unavailable?.includes('InternalError') === true)
  })

  test('where lists fail too and watches fail no longer, the watches go on', async () => {
    await using source = await watching()
    let failed = 0
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || (query.has('watch') && failed >= 2)) return false
      failed++
      refuse(response, 500, 'InternalError')
      return true
    }
    fake.quietly(() => fake.put(SERVICES, service('late')))
    fake.endWatches(SERVICES)
    await source.untilThere('Service/default/late')
    expect(lists(SERVICES)).toBe(2)
  })

  test('what is refused to this client, or for now, leads to no list', async () => {
    let failed = 0
    fake.fault = ({ path, query }, response) => {
      if (path !== SERVICES || !query.has('watch') || failed >= 10) return false
      failed++
      refuse(response, [403, 429, 502, 503, 504][failed % 5] ?? 0, 'No')
      return true
    }
    await using source = await new SourceRun({ server: fake.server }).untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    expect([lists(SERVICES), source.synced]).toEqual([1, 1])
  })
})

test('a server that does not say at which version it is is watched as before', async () => {
  await using source = await watching()
  fake.fault = ({ path, query }, response) => {
    if (path !== NAMESPACES || query.get('limit') !== '1') return false
    json(response, 200, { odd: true })
    return true
  }
  fake.cut()
  await until('the watches', () => KINDS.every((kind) => fake.watching(kind) === 1))
  fake.put(SERVICES, service('late'))
  await source.untilThere('Service/default/late')
  expect(lists(SERVICES)).toBe(1)
})
