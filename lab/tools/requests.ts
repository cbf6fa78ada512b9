// SPDX-License-Identifier: Apache-2.0
/** One socket a request: connect, ask, take the answer, close; counts what fails and how. Layer: lab (tool).
 *
 * requests --to tcp:10.0.0.1:80 [--count 1] [--rate 100] [--timeout-ms 2000] [--payload 64] [--reply 0]
 * With --count 0 it goes on until SIGTERM. Prints {"event":"result", ...}. */
import { parseArgs } from 'node:util'
import { parseEndpoint, type Endpoint } from './address.ts'
import { exchange } from './exchange.ts'
import { parseAnswer, type Answer, type RequestsResult } from './results.ts'

const { values } = parseArgs({
  options: {
    to: { type: 'string' },
    count: { type: 'string', default: '1' },
    rate: { type: 'string', default: '100' },
    'timeout-ms': { type: 'string', default: '2000' },
    payload: { type: 'string', default: '64' },
    reply: { type: 'string', default: '0' },
  },
})
const KEPT_ANSWERS = 3
const timeoutMs = Number(values['timeout-ms'])
const reply = Number(values.reply)
const request = `${JSON.stringify(reply > 0 ? { reply } : {}).padEnd(Number(values.payload) - 1)}\n`

const latencies: number[] = []
const answers: Answer[] = []
const pods = new Map<string, number>()
const since = new Map<string, number>()
const failures = new Map<string, number>()
const failedAt: number[] = []

async function one(to: Endpoint): Promise<void> {
  const start = performance.now()
  const ending = await exchange({ to, request, timeoutMs })
  const answer = 'line' in ending ? parseAnswer(ending.line) : undefined
  if (answer === undefined) {
    const code = 'code' in ending ? ending.code : 'NO_JSON'
    failures.set(code, (failures.get(code) ?? 0) + 1)
    failedAt.push(performance.timeOrigin + start)
    return
  }
  const complete = (answer.pad?.length ?? 0) === reply
  if (!complete) failures.set('SHORT', (failures.get('SHORT') ?? 0) + 1)
  latencies.push(performance.now() - start)
  pods.set(answer.pod, (pods.get(answer.pod) ?? 0) + 1)
  if (!since.has(answer.pod)) since.set(answer.pod, Date.now())
  if (answers.length < KEPT_ANSWERS) answers.push({ pod: answer.pod, peer: answer.peer, local: answer.local, bytes: answer.bytes })
}

function summary(): RequestsResult {
  const sorted = latencies.toSorted((a, b) => a - b)
  const take = (code: string): number => {
    const count = failures.get(code) ?? 0
    failures.delete(code)
    return count
  }
  const quantile = (share: number): number =>
    Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2))
  const counts = {
    ok: sorted.length,
    refused: take('ECONNREFUSED'),
    reset: take('ECONNRESET'),
    timeouts: take('TIMEOUT') + take('ETIMEDOUT'),
  }
  return {
    event: 'result',
    ...counts,
    errors: Object.fromEntries(failures),
    pods: Object.fromEntries(pods),
    since: Object.fromEntries(since),
    firstFailedAt: failedAt.length === 0 ? null : Math.round(Math.min(...failedAt)),
    latencyMs: sorted.length === 0 ? null : { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) },
    answers,
  }
}

const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stop.abort()
  })
const to = parseEndpoint(values.to ?? '')
const count = values.count === '0' ? Number.POSITIVE_INFINITY : Number(values.count)
process.stdout.write('{"event":"started"}\n')
const running = new Set<Promise<void>>()
const start = performance.now()
for (let sent = 0; sent < count && !stop.signal.aborted;) {
  const due = Math.min(count, Math.floor(((performance.now() - start) * Number(values.rate)) / 1000) + 1)
  for (; sent < due; sent++) {
    const exchanged = one(to).finally(() => running.delete(exchanged))
    running.add(exchanged)
  }
  if (sent < count) await new Promise((resolve) => setTimeout(resolve, Math.max(1, 500 / Number(values.rate))))
}
await Promise.all(running)
process.stdout.write(`${JSON.stringify(summary())}\n`, () => process.exit(0))
