// SPDX-License-Identifier: Apache-2.0
/** A connection straight to a backend, then another from the same port by its service; counts what became of the
 * second. Layer: lab (tool).
 *
 * port-collision --direct tcp:10.0.0.1:8080 --service tcp:10.96.0.1:80 [--tries 10] [--first-port 20000]
 * [--keep-open] [--other-port] --keep-open: the first is still there when the second comes. --other-port: the
 * second has a port of its own, for comparison. Prints {"event":"result", ...}. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { parseEndpoint, type Endpoint } from './address.ts'
import { within } from '../deadline.ts'
import type { CollideResult } from './results.ts'

const { values } = parseArgs({
  options: {
    direct: { type: 'string', default: '' },
    service: { type: 'string', default: '' },
    tries: { type: 'string', default: '10' },
    'first-port': { type: 'string', default: '20000' },
    'keep-open': { type: 'boolean', default: false },
    'other-port': { type: 'boolean', default: false },
  },
})
/** Two lost SYNs later: what is lost shows as sent again, long before. */
const TIMEOUT_MS = 5000

/** Asks once; the connection stays open. Throws when there is no answer. */
async function ask(to: Endpoint, localPort: number): Promise<Socket> {
  // a port that is asked for by number may be shared by connections to different places
  const socket = connect({ host: to.address, port: to.port, localPort, noDelay: true })
  try {
    await within(TIMEOUT_MS, async (signal) => {
      await once(socket, 'connect', { signal })
      socket.write('{}\n')
      await once(socket, 'data', { signal })
    })
    return socket.on('error', () => undefined)
  } catch (thrown) {
    socket.on('error', () => undefined).destroy()
    throw thrown
  }
}

/** Resolves when both sides have: nothing of it is under way any more. */
async function close(socket: Socket): Promise<void> {
  const closed = once(socket, 'close')
  socket.resume().end()
  await closed
}

/** SYNs that this network namespace has sent again. */
function synsSentAgain(): number {
  const [names = [], counts = []] = readFileSync('/proc/self/net/netstat', 'latin1')
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '))
  return Number(counts[names.indexOf('TCPSynRetrans')])
}

const [direct, service] = [parseEndpoint(values.direct), parseEndpoint(values.service)]
const tries = Number(values.tries)
const errors = new Map<string, number>()
let answered = 0
let lostSyns = 0
for (let attempt = 0; attempt < tries; attempt++) {
  const port = Number(values['first-port']) + 2 * attempt
  const first = await ask(direct, port)
  if (!values['keep-open']) await close(first)
  const before = synsSentAgain()
  try {
    await close(await ask(service, values['other-port'] ? port + 1 : port))
    answered++
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown)
    errors.set(code, (errors.get(code) ?? 0) + 1)
  }
  lostSyns += synsSentAgain() - before
  if (values['keep-open']) await close(first)
}
const result: CollideResult = { event: 'result', tries, answered, lostSyns, errors: Object.fromEntries(errors) }
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
