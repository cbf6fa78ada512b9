// SPDX-License-Identifier: Apache-2.0
/** Node's HTTP server behind a guard: it gets connections, and does not listen itself. Layer: lib/base. */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Guest } from './guard.ts'

/** Imported, the module would load Node's client of its own first, which takes 40 ms of a start. */
const { createServer } = process.getBuiltinModule('node:http')

/** Between two requests of a client. */
const BETWEEN_MS = 10_000

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void

/** What a guarded server does with its guests. A client that asks before it has its answer is cut off: a connection can
 * bring a thousand requests at once, and Node would begin all of them before anything else. */
export function serveHttp(handle: HttpHandler, options: ServerOptions = {}): (guest: Guest) => void {
  const guests = new WeakMap<Socket, Guest>()
  const asking = new WeakSet<Socket>()
  const http = createServer(options, (request, response) => {
    const { socket } = request
    if (socket.destroyed) return
    if (asking.has(socket)) {
      socket.destroy()
      return
    }
    asking.add(socket)
    guests.get(socket)?.busy()
    response.once('close', () => {
      asking.delete(socket)
      guests.get(socket)?.idle(BETWEEN_MS)
    })
    handle(request, response)
  })
  return (guest) => {
    guests.set(guest.socket, guest)
    http.emit('connection', guest.socket)
  }
}
