// SPDX-License-Identifier: Apache-2.0
/** What has arrived is never told as lost, however long the tool itself was held up before it could read it. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { probeText } from '../../../lab/tools/probes.ts'
import type { Order } from '../../../lab/tools/protocol.ts'
import { serve, startTool, type HeldUp } from './held-up.ts'

const TIMEOUT_MS = 100
const HELD_MS = 400
const ANSWER = { pod: 'p', peer: 'c:1', local: 's:1' }

/** Holds it up before the answer leaves, so that it cannot read it in time. */
async function holdUpTool(tool: HeldUp): Promise<void> {
  tool.child.kill('SIGUSR2')
  await tool.held()
}

/** The last line of its output. */
async function lastLine({ child }: HeldUp): Promise<unknown> {
  let last = ''
  if (child.stdout !== null) for await (const line of createInterface({ input: child.stdout })) last = line
  return JSON.parse(last)
}

/** A request agent's outcomes. */
async function order({ child }: HeldUp, what: Order): Promise<unknown> {
  if (child.stdout === null) throw new Error('no output')
  child.stdin?.write(`${JSON.stringify(what)}\n`)
  const chunks: unknown[] = await once(child.stdout, 'data')
  return JSON.parse(String(chunks[0]))
}

async function freePort(): Promise<number> {
  const socket = createSocket('udp6').bind(0)
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}

const ask = { do: 'ask', count: 1, timeoutMs: TIMEOUT_MS, payload: 16, reply: 0 } as const

describe('a held-up request agent', () => {
  test.each(['tcp', 'udp'])('%s: has its answer', async (proto) => {
    using agent = startTool(['request-agent'], HELD_MS)
    await using server = await serve(() => holdUpTool(agent))
    const to = `${proto}:127.0.0.1:${server.port}`
    expect(await order(agent, { id: 1, ...ask, to })).toMatchObject({ outcomes: [ANSWER] })
  })

  test('on a connection that stays: has its answers and the end', async () => {
    using agent = startTool(['request-agent'], HELD_MS)
    await using server = await serve(() => holdUpTool(agent))
    const on = { connection: 'c', timeoutMs: TIMEOUT_MS }
    const to = `tcp:127.0.0.1:${server.port}`
    expect(await order(agent, { id: 1, do: 'open', ...on, to })).toMatchObject({ outcomes: [ANSWER] })
    expect(await order(agent, { id: 2, do: 'say', ...on })).toMatchObject({ outcomes: [ANSWER] })
    expect(await order(agent, { id: 3, do: 'finish', ...on })).toMatchObject({ outcomes: [{ finished: true }] })
  })

  test('has its page', async () => {
    using agent = startTool(['request-agent'], 2500)
    await using server = await serve(() => holdUpTool(agent))
    const page = await order(agent, { id: 1, do: 'get', url: `http://127.0.0.1:${server.port}/` })
    expect(page).toMatchObject({ outcomes: [{ status: 200 }] })
  })
})

test.each(['tcp', 'udp'])('a held-up client, %s: answered, and as late as it was', async (proto) => {
  await using server = await serve(() => holdUpTool(client))
  const to = `${proto}:127.0.0.1:${server.port}`
  using client = startTool(['requests', '--to', to, '--timeout-ms', String(TIMEOUT_MS)], HELD_MS)
  const result = await lastLine(client)
  expect(result).toMatchObject({ ok: 1, timeouts: 0, errors: {} })
  expect(result).toHaveProperty(
    'latencyMs.max',
    expect.toSatisfy((ms: number) => ms >= HELD_MS - 50),
  )
})

test.each(['tcp', 'udp'])('a %s stream that is held up while it waits for its last answers loses none', async (proto) => {
  const ended = Promise.withResolvers<undefined>()
  let asked = 0
  await using server = await serve(async () => {
    // all but the first are answered when the stream has ended and is held up
    if (asked++ > 0) await ended.promise
  })
  using flow = startTool(['flow', '--to', `${proto}:127.0.0.1:${server.port}`, '--rate', '50', '--drain-ms', '1000'], 1300)
  const result = lastLine(flow)
  while (asked < 5) await new Promise((resolve) => setTimeout(resolve, 5))
  flow.child.kill('SIGTERM')
  await flow.held()
  ended.resolve(undefined)
  expect(await result).toMatchObject({ streams: [{ lost: 0 }] })
})

test('a held-up sink that is ended counts what came meanwhile', async () => {
  const port = await freePort()
  using sink = startTool(['datagram-sink', '--listen', String(port)], HELD_MS)
  if (sink.child.stdout !== null) await once(sink.child.stdout, 'data')
  const result = lastLine(sink)
  await holdUpTool(sink)
  const socket = createSocket('udp4')
  for (let seq = 0; seq < 100; seq++)
    await new Promise((sent) => {
      socket.send(probeText({ id: 'a', seq, at: 1 }), port, '127.0.0.1', sent)
    })
  socket.close()
  sink.child.kill('SIGTERM')
  expect(await result).toMatchObject({ runs: { a: [[0, 99, 1, 1]] } })
})

test.each(['tcp', 'udp'])('%s: silence is a timeout, at its time', async (proto) => {
  using agent = startTool(['request-agent'], HELD_MS)
  await using server = await serve(undefined)
  const to = `${proto}:127.0.0.1:${server.port}`
  const begun = performance.now()
  expect(await order(agent, { id: 1, ...ask, to })).toMatchObject({ outcomes: [{ failed: 'TIMEOUT' }] })
  expect(performance.now() - begun).toBeGreaterThanOrEqual(TIMEOUT_MS - 5)
})

test('a connection that stays silent is a timeout', async () => {
  using agent = startTool(['request-agent'], HELD_MS)
  await using server = await serve(undefined)
  const opened = { id: 1, do: 'open', connection: 'c', to: `tcp:127.0.0.1:${server.port}`, timeoutMs: TIMEOUT_MS } as const
  expect(await order(agent, opened)).toMatchObject({ outcomes: [{ failed: 'TIMEOUT' }] })
})
