// SPDX-License-Identifier: Apache-2.0
/** Takes numbered datagrams, answers none, says at the end which came. Layer: lab (tool).
 *
 * datagram-sink --listen 9001 [--listen ...]: of both families. SIGTERM ends it. Prints {"event":"result", "runs":
 * {ID: runs}}. Nothing is answered, so that what is counted is what was let through on its way here and not on the
 * way back. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Arrivals, parseProbe, type SinkResult } from './probes.ts'

const { values } = parseArgs({ options: { listen: { type: 'string', multiple: true, default: [] } } })
const streams = new Map<string, Arrivals>()

function receive(message: Buffer): void {
  const pulse = parseProbe(message.toString('latin1'))
  if (pulse === undefined) return
  const arrivals = streams.get(pulse.id) ?? new Arrivals()
  streams.set(pulse.id, arrivals)
  arrivals.add(pulse)
}

for (const port of values.listen) {
  const socket = createSocket({ type: 'udp6', recvBufferSize: 4 * 1024 * 1024 }).on('message', receive)
  socket.bind(Number(port), '::')
  await once(socket, 'listening')
}
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    const result: SinkResult = {
      event: 'result',
      runs: Object.fromEntries([...streams].map(([id, arrivals]) => [id, arrivals.runs()])),
    }
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
  })
process.stdout.write('{"event":"started"}\n')
