// SPDX-License-Identifier: Apache-2.0
/** Tools whose process is held up while their answer arrives, and servers that see to it. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

/** Does nothing else for so long. */
export function holdUp(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

const SAID = 'held up\n'
const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface HeldUp extends Disposable {
  readonly child: ChildProcess
  /** Resolves as soon as the tool is held up. */
  readonly held: () => Promise<void>
}

/** A tool that says when it is held up, for `ms`: at SIGUSR2, and a moment after SIGTERM. Neither is in the loop's
 * phase of timers: they are what comes next. */
export function startTool(args: readonly string[], ms: number): HeldUp {
  const [tool = '', ...rest] = args
  const prelude = [
    `import { writeSync } from 'node:fs'`,
    holdUp.toString(),
    `const hold = () => { writeSync(2, ${JSON.stringify(SAID)}); holdUp(${ms}) }`,
    `process.on('SIGUSR2', hold)`,
    `process.on('SIGTERM', () => setTimeout(setImmediate, 50, hold))`,
  ].join('\n')
  const loaded = `data:text/javascript,${encodeURIComponent(prelude)}`
  const node = ['--conditions=source', '--import', loaded, `lab/tools/${tool}.ts`]
  const child = spawn(process.execPath, [...node, ...rest], { cwd: root, stdio: ['pipe', 'pipe', 'pipe'] })
  let [said, seen] = ['', 0]
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const held = async (): Promise<void> => {
    while (said.length < (seen + 1) * SAID.length) await once(child.stderr, 'data')
    seen++
    if (!said.startsWith(SAID.repeat(seen))) throw new Error(said)
  }
  return { child, held, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

export interface Server extends AsyncDisposable {
  readonly port: number
}

/** On one port of TCP and UDP: each request is answered when `before` has resolved; never when it is undefined. */
export async function serve(before: ((request: string) => Promise<void>) | undefined): Promise<Server> {
  const answer = async (request: string, reply: (text: string) => void): Promise<void> => {
    if (before === undefined) return
    await before(request)
    const seq = /"seq":(\d+)/.exec(request)?.[1] ?? -1
    const line = `${JSON.stringify({ pod: 'p', peer: 'c:1', local: 's:1', bytes: request.length, seq: Number(seq) })}\n`
    reply(request.startsWith('GET') ? `HTTP/1.1 200 OK\r\ncontent-length: ${line.length}\r\n\r\n${line}` : line)
  }
  const sockets = new Set<Socket>()
  const tcp = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket)
    const answers: Promise<void>[] = []
    socket.setEncoding('latin1').on('error', () => socket.destroy())
    socket.on('data', (chunk: string) => {
      for (const request of chunk.startsWith('GET') ? [chunk] : chunk.trimEnd().split('\n'))
        answers.push(answer(request, (text) => socket.write(text)))
    })
    socket.on('end', () => void Promise.all(answers).then(() => socket.end()))
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const address = tcp.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const udp = createSocket('udp4').bind(port, '127.0.0.1')
  udp.on('message', (message, from) => {
    void answer(message.toString(), (text) => {
      udp.send(text, from.port, from.address)
    })
  })
  await once(udp, 'listening')
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      udp.close()
      for (const socket of sockets) socket.destroy()
      tcp.close()
      await once(tcp, 'close')
    },
  }
}
