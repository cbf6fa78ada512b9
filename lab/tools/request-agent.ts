// SPDX-License-Identifier: Apache-2.0
/** Sends the requests that it reads, until its input ends: one process a place, instead of one a request. Layer: lab
 * (tool).
 *
 * A line of standard input is an {@link Order}, a line of standard output the {@link Reply} to one of them, in the
 * order in which they are done. Ends with its input. */
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { parseEndpoint } from './address.ts'
import { within } from '../deadline.ts'
import { exchange } from './exchange.ts'
import { PersistentConnection } from './persistent-connection.ts'
import { isOrder, type Ask, type Order, type Outcome } from './protocol.ts'
import { parseAnswer } from './results.ts'

/** Many requests are no single moment: what comes and goes in between is met by some of them. */
const SPACING_MS = 10

const held = new Map<string, PersistentConnection>()

async function one(ask: Ask): Promise<Outcome> {
  const fields = ask.reply > 0 ? { reply: ask.reply } : {}
  const request = `${JSON.stringify(fields).padEnd(ask.payload - 1)}\n`
  const ending = await exchange({ to: parseEndpoint(ask.to), request, timeoutMs: ask.timeoutMs, localPort: ask.localPort })
  if ('code' in ending) return { failed: ending.code }
  const answer = parseAnswer(ending.line)
  if (answer === undefined) return { failed: 'NO_ANSWER' }
  if ((answer.pad?.length ?? 0) !== ask.reply) return { failed: 'SHORT' }
  return { pod: answer.pod, peer: answer.peer, local: answer.local, bytes: answer.bytes }
}

async function all(ask: Ask): Promise<Outcome[]> {
  // those from one port can only follow each other
  if (ask.localPort === undefined)
    return await Promise.all(
      Array.from({ length: ask.count }, async (_, at) => {
        await setTimeout(at * SPACING_MS)
        return await one(ask)
      }),
    )
  const outcomes: Outcome[] = []
  while (outcomes.length < ask.count) outcomes.push(await one(ask))
  return outcomes
}

async function page(url: string): Promise<Outcome> {
  try {
    return await within(2000, async (signal) => {
      const response = await fetch(url, { signal, headers: { connection: 'close' } })
      return { status: response.status, text: await response.text() }
    })
  } catch (thrown) {
    const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown
    return { failed: cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause) }
  }
}

/** The connection of that name; a new one takes its place. */
function connection(order: Extract<Order, { connection: string }>): PersistentConnection {
  if (order.do === 'open') {
    held.get(order.connection)?.close()
    held.set(order.connection, new PersistentConnection(parseEndpoint(order.to), order.localPort))
  }
  const found = held.get(order.connection)
  if (found === undefined) throw new Error(`no connection ${order.connection}`)
  return found
}

async function obey(order: Order): Promise<Outcome[]> {
  switch (order.do) {
    case 'ask':
      return await all(order)
    case 'get':
      return [await page(order.url)]
    case 'open':
    case 'say':
      return [await connection(order).say(order.text ?? '{}', order.timeoutMs)]
    case 'finish':
      return [await connection(order).finish(order.timeoutMs)]
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const order: unknown = JSON.parse(line)
  if (!isOrder(order)) throw new Error(`not an order: ${line}`)
  void obey(order).then((outcomes) => process.stdout.write(`${JSON.stringify({ id: order.id, outcomes })}\n`))
}
process.exit(0)
