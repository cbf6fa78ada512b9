// SPDX-License-Identifier: Apache-2.0
/** What an agent tells a real API server of its node: the Node's condition. The clock is the test's. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { GRACE_MS, NodeCondition } from '#agent/status/node-condition.ts'
import { NODE, statusServer, tell } from './server.ts'

const HOUR_MS = 3_600_000

const server = await statusServer()

describe('the condition of a node', () => {
  const unready: string[] = []
  let known = true
  const agent = ({ wall = () => Date.now(), wasReady = false } = {}) =>
    new NodeCondition({
      api: server.client,
      node: 'n1',
      unready: () => unready,
      takesPods: () => false,
      wasReady,
      isKnown: () => known,
      wall,
      random: () => 0,
    })

  beforeEach(() => {
    unready.length = 0
    known = true
  })

  test('is written once, whatever else is there; the next agent writes nothing', async () => {
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady' }
    await server.client.patch(NODE, { status: { conditions: [ready] } }, { type: 'strategic', subresource: 'status' })
    const one = agent()
    expect([await tell(one, 0), await tell(one, 1000)]).toEqual([1, 0])
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
    expect(await server.condition(NODE, 'Ready')).toMatchObject(ready)
    const before = await server.version(NODE)
    await tell(agent({ wall: () => Date.now() + HOUR_MS }), 0)
    expect(await server.version(NODE)).toBe(before)
  })

  test('says what is wrong: no network at a start that does not end, and words alone later', async () => {
    const one = agent()
    unready.push('dataplane.programs: E2BIG')
    expect([await tell(one, 0), await tell(one, GRACE_MS - 1), await tell(one, GRACE_MS)]).toEqual([0, 0, 1])
    const down = await server.condition(NODE, 'NetworkUnavailable')
    expect(down).toMatchObject({ status: 'True', reason: 'NetplaneIsNotReady', message: 'dataplane.programs: E2BIG' })
    unready.length = 0
    await tell(one, GRACE_MS + 1000)
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
    unready.push('dataplane.routes: EPERM')
    const at = GRACE_MS + 2000
    expect([await tell(one, at), await tell(one, at + GRACE_MS)]).toEqual([0, 1])
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsDegraded' })
    unready.push('dataplane.addrs: E2BIG')
    expect([await tell(one, at + GRACE_MS + 59_999), await tell(one, at + GRACE_MS + 60_000)]).toEqual([0, 1])
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ message: 'dataplane.routes: EPERM; dataplane.addrs: E2BIG' })
  })

  test('an agent that starts where one before was ready takes no network away, however long it takes', async () => {
    const one = agent({ wasReady: true })
    unready.push('dataplane.programs: E2BIG')
    expect([await tell(one, 0), await tell(one, GRACE_MS)]).toEqual([0, 1])
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsDegraded' })
  })

  test('the next Node of the name hears of it as well', async () => {
    const one = agent()
    await tell(one, 0)
    await server.client.delete(NODE)
    known = false
    await tell(one, 1000)
    await server.client.create(asApiObject({ ...NODE, metadata: { name: NODE.name } }))
    known = true
    await tell(one, 2000)
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False' })
  })

  test('what others have made of it is put right within two hours', async () => {
    const one = agent()
    await tell(one, 0)
    const other = { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated' }
    await server.client.patch(NODE, { status: { conditions: [other] } }, { type: 'strategic', subresource: 'status' })
    await tell(one, 2 * HOUR_MS)
    expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False', reason: 'NetplaneIsUp' })
  })
})
