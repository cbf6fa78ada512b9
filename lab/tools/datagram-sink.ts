// SPDX-License-Identifier: Apache-2.0
/** Takes numbered datagrams, answers none, says at the end which came. Layer: lab (tool).
 *
 * datagram-sink --listen 9001 [--listen ...]: of both families. SIGTERM ends it. Prints {"event":"result", "runs":
 * {ID: runs}}. Nothing is answered, so that what is counted is what was let through on its way here and not on the
 * way back. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Arrivals, parseProbe, type SinkResult } from './probes.ts'

const { values } = parseArgs({ options: { listen: { type: 'string', multiple: true, default: [] } } })
const streams = new Map<string, Arrivals>()
let received = 0

function receive(message: Buffer): void {
  received++
  const pulse = parseProbe(message.toString('latin1'))
  if (pulse === undefined) return
  const arrivals = streams.get(pulse.id) ?? new Arrivals()
  streams.set(pulse.id, arrivals)
  arrivals.add(pulse)
}

/** A turn of the event loop takes a few datagrams of each socket: turns, until one has found none. */
async function readAll(): Promise<void> {
  for (let before = -1; before !== received;) {
    before = received
    // the first comes before sockets are read again
    for (let turn = 0; turn < 2; turn++) await setImmediate()
  }
}

async function end(): Promise<void> {
  await readAll()
  const result: SinkResult = {
    event: 'result',
    runs: Object.fromEntries([...streams].map(([id, arrivals]) => [id, arrivals.runs()])),
  }
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
}

for (const port of values.listen) {
  const socket = createSocket({ type: 'udp6', recvBufferSize: 4 * 1024 * 1024 }).on('message', receive)
  socket.bind(Number(port), '::')
  await once(socket, 'listening')
}
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => void end())
process.stdout.write('{"event":"started"}\n')
