// SPDX-License-Identifier: Apache-2.0
/** Steady streams of numbered messages to echo servers; says at the end what was lost. Layer: lab (tool).
 *
 * flow --to udp:10.0.0.1:80 [--to tcp:[fd00::1]:80 ...] [--rate 200] [--seconds 600] [--payload 64] [--drain-ms 1000]
 * One socket a stream, for the whole time. SIGTERM and SIGINT end it early. Prints {"event":"established"} when
 * each stream has its first answer, {"event":"result", ...} at the end. */
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { endpointText, parseEndpoint, type Endpoint } from './address.ts'
import { within } from '../deadline.ts'
import { udpSocketDrops } from './drops.ts'
import { parseAnswer, type FlowResult } from './results.ts'
import { StreamStats } from './stream-stats.ts'

interface Stream {
  readonly tally: StreamStats
  /** one more message */
  send(): void
  close(): void
}

const { values } = parseArgs({
  options: {
    to: { type: 'string', multiple: true, default: [] },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '600' },
    payload: { type: 'string', default: '64' },
    'drain-ms': { type: 'string', default: '1000' },
  },
})
const payload = Number(values.payload)
const rate = Number(values.rate)

function message(tally: StreamStats): string {
  return `${JSON.stringify({ seq: tally.send(performance.now()) }).padEnd(payload - 1)}\n`
}

function receive(tally: StreamStats, line: string): void {
  const answer = parseAnswer(line)
  if (answer !== undefined) tally.answer(answer, performance.now())
}

function udpStream(to: Endpoint): Stream {
  const tally = new StreamStats(endpointText(to))
  const socket = createSocket({ type: to.address.includes(':') ? 'udp6' : 'udp4', recvBufferSize: 4 * 1024 * 1024 })
  const failed = (error: NodeJS.ErrnoException | null): void => {
    if (error !== null) tally.error(error.code ?? error.message)
  }
  let connected = false
  socket.on('error', failed)
  socket.on('message', (bytes) => {
    receive(tally, bytes.toString('latin1'))
  })
  socket.connect(to.port, to.address, () => {
    connected = true
  })
  tally.connection()
  return {
    tally,
    send: () => {
      if (connected) socket.send(message(tally), failed)
    },
    close: () => socket.close(),
  }
}

function tcpStream(to: Endpoint): Stream {
  const tally = new StreamStats(endpointText(to))
  let socket: Socket | undefined
  let closed = false
  const open = (): void => {
    if (closed) return
    const lines = new LineBuffer()
    tally.connection()
    socket = connect({ host: to.address, port: to.port, noDelay: true }).setEncoding('latin1')
    socket.on('error', (error: NodeJS.ErrnoException) => {
      tally.error(error.code ?? error.message)
    })
    socket.on('data', (chunk: string) => {
      for (const line of lines.push(chunk)) receive(tally, line)
    })
    socket.on('end', () => {
      if (!closed) tally.error('ENDED')
    })
    socket.on('close', () => {
      socket = undefined
      setTimeout(open, 100)
    })
  }
  open()
  return {
    tally,
    send: () => {
      const text = message(tally)
      socket?.write(text)
    },
    close: () => {
      closed = true
      socket?.destroy()
    },
  }
}

/** Chunks in, whole lines out. */
class LineBuffer {
  #rest = ''

  push(chunk: string): string[] {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    return lines
  }
}

async function run(streams: readonly Stream[], signal: AbortSignal): Promise<FlowResult> {
  const drops = udpSocketDrops()
  const start = performance.now()
  let told = false
  for (let due = 1; !signal.aborted; due = Math.floor(((performance.now() - start) * rate) / 1000) + 1) {
    for (const stream of streams) for (let behind = due - stream.tally.sent; behind > 0; behind--) stream.send()
    if (!told && streams.every((stream) => stream.tally.received > 0)) {
      told = true
      process.stdout.write('{"event":"established"}\n')
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, 500 / rate)))
  }
  const end = performance.now()
  for (const stream of streams) stream.tally.silence(end)
  await within(Number(values['drain-ms']), async (late) => {
    while (!late.aborted && streams.some((stream) => stream.tally.open > 0)) await new Promise((resolve) => setTimeout(resolve, 10))
  })
  for (const stream of streams) stream.close()
  return {
    event: 'result',
    streams: streams.map((stream) => stream.tally.result(performance.timeOrigin)),
    durationMs: Math.round(end - start),
    socketDrops: udpSocketDrops() - drops,
  }
}

const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stop.abort()
  })
const timer = setTimeout(
  () => {
    stop.abort()
  },
  Number(values.seconds) * 1000,
)
const streams = values.to.map(parseEndpoint).map((to) => (to.proto === 'udp' ? udpStream(to) : tcpStream(to)))
process.stdout.write('{"event":"started"}\n')
const result = await run(streams, stop.signal)
clearTimeout(timer)
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
