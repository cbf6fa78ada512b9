// SPDX-License-Identifier: Apache-2.0
/** Answers every TCP line and every UDP datagram with its name and the client that it saw. Layer: lab (tool).
 *
 * echo --name NAME --listen tcp:8080 --listen udp:8080 ... [--address 10.0.0.1 ...]: waits until it has these
 * addresses. The answer is one JSON line {pod, peer, local, bytes, seq?, pad?}. A request that is JSON may carry
 * `seq`, which comes back, and `reply`: so many bytes of padding in the answer. A browser's or curl's request is
 * answered as HTTP. UDP listens on each address apart: so the answer leaves from, and names, the address that was
 * asked. Prints "listening" once all sockets are open. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { networkInterfaces, setPriority } from 'node:os'
import { parseArgs } from 'node:util'
import { hostPort } from '#lib/base/ip.ts'
import { plainAddress } from './address.ts'

const SOCKETS_OF_PORT = 16
/** A question that waits here for a processor would count as lost on its way. */
const BEFORE_OTHERS = -10

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'echo' },
    listen: { type: 'string', multiple: true, default: [] },
    address: { type: 'string', multiple: true, default: [] },
  },
})
const name = values.name

function answer(request: string, ends: { peer: string; local: string }): string {
  const { seq, reply } = requestFields(request)
  const pad = reply === undefined ? undefined : '.'.repeat(Math.min(reply, 64 * 1024 * 1024))
  return `${JSON.stringify({ pod: name, ...ends, bytes: Buffer.byteLength(request), seq, pad })}\n`
}

function requestFields(request: string): { seq?: number; reply?: number } {
  if (!request.startsWith('{')) return {}
  try {
    const parsed: unknown = JSON.parse(request)
    const number = (key: string): Record<string, number> => {
      const value: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, key) : undefined
      return typeof value === 'number' ? { [key]: value } : {}
    }
    return { ...number('seq'), ...number('reply') }
  } catch {
    return {}
  }
}

const HTTP = /^[A-Z]+ \S+ HTTP\/1\.[01]\r?$/

function httpAnswer(body: string): string {
  return [
    'HTTP/1.1 200 OK',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n')
}

function serveLines(socket: Socket): void {
  const ends = {
    peer: hostPort(plainAddress(socket.remoteAddress ?? ''), socket.remotePort ?? 0),
    local: hostPort(plainAddress(socket.localAddress ?? ''), socket.localPort ?? 0),
  }
  let rest: string[] = []
  socket.setNoDelay(true).setEncoding('latin1')
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: string) => {
    const parts = chunk.split('\n')
    for (const [index, part] of parts.entries()) {
      rest.push(part)
      if (index === parts.length - 1) return
      const line = rest.join('')
      rest = []
      if (HTTP.test(line)) {
        socket
          .removeAllListeners('data')
          .resume()
          .end(httpAnswer(answer(line, ends)))
        return
      }
      socket.write(answer(line, ends))
    }
  })
}

/** The event loop accepts one connection of a socket at a time, between everything else that it does: several sockets
 * share the port, or connections wait in the kernel for seconds where streams and datagrams do not. */
async function listenTcp(port: number): Promise<void> {
  for (let socket = 0; socket < SOCKETS_OF_PORT; socket++) {
    // allowHalfOpen would leave connections of killed clients behind
    const server = createServer({ noDelay: true }, serveLines).listen({ port, host: '::', backlog: 1024, reusePort: true })
    await once(server, 'listening')
  }
}

async function listenUdp(port: number, address: { readonly address: string; readonly family: string }): Promise<void> {
  const v6 = address.family === 'IPv6'
  const socket = createSocket({ type: v6 ? 'udp6' : 'udp4', ipv6Only: v6, recvBufferSize: 4 * 1024 * 1024 })
  socket.on('message', (message: Buffer, from: RemoteInfo) => {
    if (from.port === 0) return // wants no answer
    const ends = { peer: hostPort(from.address, from.port), local: hostPort(address.address, port) }
    socket.send(answer(message.toString('latin1').replace(/\n$/, ''), ends), from.port, from.address)
  })
  socket.bind(port, address.address)
  await once(socket, 'listening')
  // a client that is gone sends "port unreachable": no reason to end
  socket.on('error', () => undefined)
}

function ownAddresses(): { readonly address: string; readonly family: string }[] {
  const infos = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return infos.filter((info) => info.scopeid === undefined || info.scopeid === 0)
}

if (process.getuid?.() === 0) setPriority(BEFORE_OTHERS)
// a device is not listed before the kernel has found it running, up to a second after its other end is up
let addresses = ownAddresses()
while (!values.address.every((wanted) => addresses.some(({ address }) => address === wanted))) {
  await new Promise((resolve) => setTimeout(resolve, 20))
  addresses = ownAddresses()
}
for (const text of values.listen) {
  const [proto, port] = text.split(':')
  if (proto === 'tcp') await listenTcp(Number(port))
  else for (const address of addresses) await listenUdp(Number(port), address)
}
process.stdout.write('listening\n')
