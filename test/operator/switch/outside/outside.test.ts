// SPDX-License-Identifier: Apache-2.0
/** Node ports that clients outside reach: before a node changes its mode and after. Layer: test. */
import { createSocket } from 'node:dgram'
import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { Outside } from '#operator/switch/outside/outside.ts'
import type { NodeFound } from '#operator/switch/observed.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { World } from '../world.ts'

const RUNNING = new AbortController().signal
const CLOSED = '127.0.0.1:1'

let server: Server
/** of both families */
let open: readonly string[]

beforeEach(async () => {
  server = createServer().listen(0, '::')
  await once(server, 'listening')
  const address = server.address()
  const port = isObject(address) ? Number(address['port']) : 0
  open = [hostPort('127.0.0.1', port), hostPort('::1', port)]
})

afterEach(() => {
  server.close()
})

function node(nodePorts: readonly string[], at = '2026-01-01T00:00:00Z', udpNodePorts: readonly string[] = []): NodeFound {
  const proof = { mode: 'BPF', state: 'Proven', asked: 1, answered: 1, failed: [], nodePorts, udpNodePorts, at } as const
  const dataplane = { mode: 'BPF', since: at, configurations: {} } as const
  const status = { version: 'v', dataplane, proof, kubeProxy: undefined, flows: undefined }
  return { name: 'a', uid: 'u', isReady: true, unreadySince: 0, isCordoned: false, isOperators: false, agentSince: 0, status }
}

/** Time passes while it is waited. */
async function waited<T>(clock: FakeClock, result: Promise<T>): Promise<T> {
  const isOver = result.then(() => true)
  while (!(await Promise.race([isOver, new Promise<false>((resolve) => setTimeout(resolve, 5, false))]))) clock.advance(250)
  return await result
}

test('what answers before is known, and what does not afterwards is silent until the next proof', async () => {
  const clock = new FakeClock()
  const outside = new Outside({ clock })
  expect(await outside.answering(node([...open, CLOSED]), RUNNING)).toEqual(open)
  expect(await waited(clock, outside.silent(node([]), [...open, CLOSED], RUNNING))).toEqual([CLOSED])
  server.close()
  expect(await outside.silent(node([]), open, RUNNING), 'asked once').toEqual([CLOSED])
  expect(await waited(clock, outside.silent(node([], '2026-01-01T00:01:00Z'), open, RUNNING))).toEqual(open)
})

test('name servers are asked over UDP, and told apart from what TCP reaches on the same port', async () => {
  const names = createSocket('udp4').bind(Number(open[0]?.split(':')[1]), '127.0.0.1')
  names.on('message', (question, { port, address }) => {
    question.writeUInt16BE(0x8183, 2)
    names.send(question, port, address)
  })
  await once(names, 'listening')
  const clock = new FakeClock()
  const outside = new Outside({ clock })
  const found = await outside.answering(node(open.slice(0, 1), undefined, [...open.slice(0, 1), CLOSED]), RUNNING)
  expect(found).toEqual([open[0], `${open[0]}/UDP`])
  names.close()
  expect(await waited(clock, outside.silent(node([]), found, RUNNING))).toEqual([`${open[0]}/UDP`])
})

test('a node serves once what answered outside answers again; one that is silent there goes back', () => {
  const world = new World(['a', 'b'], { mode: 'BPF' })
  const mark = (): void => {
    const found = world.overrides.get('a')
    if (found?.mark !== undefined) world.overrides.set('a', { ...found, mark: { ...found.mark, outside: ['192.0.2.1:30080'] } })
  }
  const phases = (rounds: number): readonly string[] =>
    Array.from({ length: rounds }, () => {
      const { phase, nodes } = world.operate()
      mark()
      world.round()
      return [phase, ...nodes].join(' ')
    })
  expect(new Set(phases(4)), 'it is waited for that it is asked').toEqual(new Set(['Canary a']))
  world.outside = new Map([['a', ['192.0.2.1:30080']]])
  phases(2)
  expect(world.modes()).toEqual({ a: 'Standard', b: 'Standard' })
  expect(world.overrides.get('a')?.mark?.failed?.reason).toBe('192.0.2.1:30080 does not answer from outside the node')
  world.asked = { ...world.asked, generation: 2 }
  world.outside = new Map([['a', []]])
  expect(phases(4)).toContain('Wave b')
})
