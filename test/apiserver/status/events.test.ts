// SPDX-License-Identifier: Apache-2.0
/** What an agent tells a real API server of its node: events on what is refused. The clock is the test's.
 * Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { AGAIN_MS, Events } from '#agent/status/events.ts'
import type { Refusal } from '#agent/status/refusals.ts'
import { TURN_MS } from '#agent/status/leader-order.ts'
import { NODE, statusServer, tell } from './server.ts'

const EVENTS = { apiVersion: 'v1', kind: 'Event' } as const

const server = await statusServer()

describe('events on what is refused', () => {
  const names = ['n1', 'n2']
  const refusal: Refusal = {
    key: 'v1 Service default web',
    object: { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' },
    reason: 'Refused',
    message: 'spec.ports[0].port: must be a port',
    own: false,
  }
  let refusals: readonly Refusal[] = []
  let wall = Date.UTC(2026, 0, 1)
  const agent = (node: string) => new Events({ api: server.client, node, nodes: () => names, refusals: () => refusals, wall: () => wall })
  /** The server has something to say itself. */
  const told = async (): Promise<readonly ApiObject[]> =>
    await server.client.list({ ...EVENTS, namespace: 'default' }, { fieldSelector: 'source=netplane-agent' })
  /** Both clocks at once. */
  const at = async (now: number, ...agents: readonly Events[]): Promise<readonly unknown[]> => {
    wall = Date.UTC(2026, 0, 1) + now
    for (const one of agents) await tell(one, now)
    return (await told()).map(({ count, message, source }) => [message, count, isObject(source) && source['host']])
  }

  const makeService = async (): Promise<string | undefined> => {
    const metadata = { namespace: 'default', name: 'web' }
    const made = await server.client.create(asApiObject({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } }))
    return made.metadata.uid
  }

  beforeEach(async () => {
    refusals = [refusal]
    await makeService()
  })

  /** The node whose turn it is first. */
  function inOrder(): readonly [string, string] {
    return agent('n1').due(0).length === 1 ? ['n1', 'n2'] : ['n2', 'n1']
  }

  test('one node reports it on the object as kubectl looks for it, and the other finds the event', async () => {
    const order = inOrder()
    const [first, second] = [agent(order[0]), agent(order[1])]
    const said = [[refusal.message, 1, order[0]]]
    expect(await at(0, first, second)).toEqual(said)
    expect(await at(TURN_MS, first, second)).toEqual(said)
    const [event] = await told()
    const uid = (await server.client.get(refusal.object)).metadata.uid
    expect(event).toMatchObject({ type: 'Warning', reason: 'Refused', involvedObject: { ...refusal.object, uid } })
  })

  test('the other stands in where the first is down, and the next agent of that node says nothing', async () => {
    const order = inOrder()
    const second = agent(order[1])
    expect(await at(0, second)).toEqual([])
    const said = [[refusal.message, 1, order[1]]]
    expect(await at(TURN_MS, second)).toEqual(said)
    expect(await at(TURN_MS + 1000, agent(order[0]))).toEqual(said)
  })

  test('one node says it again, and counts, before the server forgets it', async () => {
    const order = inOrder()
    const [first, second] = [agent(order[0]), agent(order[1])]
    await at(0, first, second)
    await at(TURN_MS, first, second)
    expect(await at(AGAIN_MS - 1000, first, second)).toEqual([[refusal.message, 1, order[0]]])
    expect(second.due(AGAIN_MS + 1000)).toEqual([])
    expect(await at(AGAIN_MS + 1000, first)).toEqual([[refusal.message, 2, order[0]]])
    expect(await at(AGAIN_MS + 1000 + TURN_MS, second)).toEqual([[refusal.message, 2, order[0]]])
  })

  test('a warning whose event the server has forgotten is reported again', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    for (const event of await told()) await server.client.delete(namedOf(event))
    expect(await at(AGAIN_MS, one)).toEqual([[refusal.message, 1, node]])
  })

  test('a warning that is over is not reported again; when it comes back it is counted', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    refusals = []
    expect(await at(AGAIN_MS, one)).toEqual([[refusal.message, 1, node]])
    await at(AGAIN_MS + 1000, one)
    refusals = [refusal]
    expect(await at(AGAIN_MS + 2000, one)).toEqual([[refusal.message, 2, node]])
    refusals = []
    await at(AGAIN_MS + 10_000, one)
    refusals = [refusal]
    expect(await at(AGAIN_MS + 20_000, one)).toEqual([[refusal.message, 3, node]])
  })

  test('an object that is made again as wrong as before is warned of by its own uid', async () => {
    const [node] = inOrder()
    const one = agent(node)
    await at(0, one)
    await server.client.delete(refusal.object)
    refusals = []
    await at(1000, one)
    const uid = await makeService()
    refusals = [refusal]
    await at(2000, one)
    const uids = (await told()).map(({ involvedObject }) => isObject(involvedObject) && involvedObject['uid'])
    expect(uids).toHaveLength(2)
    expect(uids).toContain(uid)
  })

  test('an object that is gone is not spoken of', async () => {
    await server.client.delete(refusal.object)
    const [node] = inOrder()
    expect(await at(0, agent(node))).toEqual([])
  })

  test('a warning about the whole cluster is in the default namespace', async () => {
    refusals = [{ ...refusal, key: 'node', object: NODE, own: true }]
    expect(await at(0, agent('n2'))).toEqual([[refusal.message, 1, 'n2']])
  })
})
