// SPDX-License-Identifier: Apache-2.0
/** Asks, again and again, servers that should never hear it. Layer: lab (tool).
 *
 * negative-probe --to tcp:10.0.0.1:8082 [--to udp:... ...] [--rate 5] [--timeout-ms 500]
 * SIGTERM ends it. Prints {"event":"result", "knocks": [...]}. A refusal by the other end is as good as an answer. */
import { parseArgs } from 'node:util'
import { endpointText, parseEndpoint, type Endpoint } from './address.ts'
import { exchange } from './exchange.ts'
import type { NegativeProbe, NegativeProbeResult } from './probes.ts'

const { values } = parseArgs({
  options: {
    to: { type: 'string', multiple: true, default: [] },
    rate: { type: 'string', default: '5' },
    'timeout-ms': { type: 'string', default: '500' },
  },
})
const [rate, timeoutMs] = [Number(values.rate), Number(values['timeout-ms'])]
const ends = values.to.map(parseEndpoint)
const knocks = ends.map((to): { -readonly [K in keyof NegativeProbe]: NegativeProbe[K] } => ({
  to: endpointText(to),
  tries: 0,
  through: 0,
  firstAt: null,
}))

async function once(to: Endpoint, at: number): Promise<void> {
  const knock = knocks[at]
  const begun = Date.now()
  const ending = await exchange({ to, request: '{}\n', timeoutMs })
  if (knock === undefined) return
  knock.tries++
  if ('code' in ending && !['ECONNREFUSED', 'ECONNRESET', 'ENDED'].includes(ending.code)) return
  knock.through++
  knock.firstAt ??= begun
}

const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stop.abort()
  })
process.stdout.write('{"event":"started"}\n')
const running = new Set<Promise<void>>()
while (!stop.signal.aborted) {
  for (const [at, to] of ends.entries()) {
    const knocking = once(to, at).finally(() => running.delete(knocking))
    running.add(knocking)
  }
  await new Promise((resolve) => setTimeout(resolve, 1000 / rate))
}
await Promise.all(running)
const result: NegativeProbeResult = { event: 'result', knocks }
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
