// SPDX-License-Identifier: Apache-2.0
/** Numbered datagrams to pairs of ports that should always be judged alike: for a receiver that counts what arrives.
 * Layer: lab (tool).
 *
 * probe-sender --stream "ID udp:10.0.0.1:9001 udp:10.0.0.1:9002" [--stream ...] [--rate 50]
 * Each round sends one datagram to the first endpoint and at once one to the second, from a port that no flow has
 * had for long: both are new flows. They are numbered through, as ID. Beside them, from one socket for all the
 * time, one of "ID/0" and one of "ID/1". SIGTERM ends it. Prints {"event":"result", "sent": {ID: rounds}, "errors":
 * {CODE: count}}. */
import { createSocket, type Socket } from 'node:dgram'
import { parseArgs } from 'node:util'
import { parseEndpoint, type Endpoint } from './address.ts'
import { probeText, type ProbeResult } from './probes.ts'

interface Stream {
  readonly id: string
  readonly ends: readonly Endpoint[]
  readonly open: Socket
  port: number
  rounds: number
}

/** Used one after the other: at usual rates it takes longer to come round than programs remember a flow. */
const [FIRST_PORT, PORTS] = [10_000, 50_000]

const { values } = parseArgs({
  options: { stream: { type: 'string', multiple: true, default: [] }, rate: { type: 'string', default: '50' } },
})
const rate = Number(values.rate)
const errors = new Map<string, number>()

function failed(error: NodeJS.ErrnoException | null): void {
  if (error !== null) errors.set(error.code ?? error.message, (errors.get(error.code ?? error.message) ?? 0) + 1)
}

function newSocket(to: Endpoint): Socket {
  return createSocket({ type: to.address.includes(':') ? 'udp6' : 'udp4', reuseAddr: false })
}

function streamOf(text: string, at: number): Stream {
  const [id = '', ...ends] = text.split(' ')
  const endpoints = ends.map(parseEndpoint)
  const [first] = endpoints
  if (first === undefined) throw new Error(`no endpoint in ${text}`)
  return { id, ends: endpoints, open: newSocket(first).on('error', failed), port: FIRST_PORT + at * 3000, rounds: 0 }
}

function send(socket: Socket, to: Endpoint, pulse: { readonly id: string; readonly seq: number }): Promise<void> {
  const text = probeText({ ...pulse, at: Date.now() })
  return new Promise((resolve) => {
    socket.send(text, to.port, to.address, (error) => {
      failed(error)
      resolve()
    })
  })
}

/** One from a port of its own to each end. A port that is in use is left out. */
function fresh(stream: Stream): void {
  const [first] = stream.ends
  if (first === undefined) return
  const socket = newSocket(first)
  stream.port = stream.port + 1 < FIRST_PORT + PORTS ? stream.port + 1 : FIRST_PORT
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') failed(error)
    socket.close()
  })
  socket.bind(stream.port, () => {
    const from = stream.ends.length * stream.rounds++
    void Promise.all(stream.ends.map((to, at) => send(socket, to, { id: stream.id, seq: from + at }))).then(() => {
      socket.close()
    })
  })
}

const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stop.abort()
  })
const streams = values.stream.map(streamOf)
process.stdout.write('{"event":"started"}\n')
const start = performance.now()
for (let round = 0; !stop.signal.aborted; round++) {
  for (const stream of streams) {
    fresh(stream)
    for (const [at, to] of stream.ends.entries()) void send(stream.open, to, { id: `${stream.id}/${at}`, seq: round })
  }
  const wait = ((round + 1) * 1000) / rate - (performance.now() - start)
  await new Promise((resolve) => setTimeout(resolve, Math.max(1, wait)))
}
const result: ProbeResult = {
  event: 'result',
  sent: Object.fromEntries(streams.map(({ id, rounds, ends }) => [id, rounds * ends.length])),
  errors: Object.fromEntries(errors),
}
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
