// SPDX-License-Identifier: Apache-2.0
/** One socket a request: connect, ask, take the answer, close; counts what fails and how. Layer: lab (tool).
 *
 * requests --to tcp:10.0.0.1:80 [--to …] [--count 1] [--rate 100] [--timeout-ms 2000] [--payload 64] [--reply 0]
 * Count and rate are of each destination. With --count 0 it goes on until SIGTERM. Prints {"event":"result", ...}: of
 * several destinations with `each`, a result for each in their order. */
import { parseArgs } from 'node:util'
import { parseEndpoint, type Endpoint } from './address.ts'
import { exchange } from './exchange.ts'
import { RequestStats } from './request-stats.ts'
import { parseAnswer } from './results.ts'

const { values } = parseArgs({
  options: {
    to: { type: 'string', multiple: true, default: [] },
    count: { type: 'string', default: '1' },
    rate: { type: 'string', default: '100' },
    'timeout-ms': { type: 'string', default: '2000' },
    payload: { type: 'string', default: '64' },
    reply: { type: 'string', default: '0' },
  },
})
const timeoutMs = Number(values['timeout-ms'])
const reply = Number(values.reply)
const request = `${JSON.stringify(reply > 0 ? { reply } : {}).padEnd(Number(values.payload) - 1)}\n`

async function one(to: Endpoint, stats: RequestStats): Promise<void> {
  const start = performance.now()
  const ending = await exchange({ to, request, timeoutMs })
  const answer = 'line' in ending ? parseAnswer(ending.line) : undefined
  if (answer === undefined) stats.failure('code' in ending ? ending.code : 'NO_JSON', start)
  else stats.answer(answer, { start, end: performance.now(), complete: (answer.pad?.length ?? 0) === reply })
}

const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stop.abort()
  })
const all = values.to.map((text) => ({ to: parseEndpoint(text), stats: new RequestStats() }))
const count = values.count === '0' ? Number.POSITIVE_INFINITY : Number(values.count)
process.stdout.write('{"event":"started"}\n')
const running = new Set<Promise<void>>()
const start = performance.now()
for (let sent = 0; sent < count && !stop.signal.aborted;) {
  const due = Math.min(count, Math.floor(((performance.now() - start) * Number(values.rate)) / 1000) + 1)
  for (; sent < due; sent++)
    for (const { to, stats } of all) {
      const exchanged = one(to, stats).finally(() => running.delete(exchanged))
      running.add(exchanged)
    }
  if (sent < count) await new Promise((resolve) => setTimeout(resolve, Math.max(1, 500 / Number(values.rate))))
}
await Promise.all(running)
const results = all.map(({ stats }) => stats.result(performance.timeOrigin))
const result = results.length === 1 ? results[0] : { event: 'result', each: results }
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
