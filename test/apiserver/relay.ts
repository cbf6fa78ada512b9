// SPDX-License-Identifier: Apache-2.0
/** Carries TCP from an address of this machine to a server, until it is cut; or takes connections and says nothing.
 * Layer: test. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

export class Relay implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
  }

  /** `to`: its port is the same; undefined: nowhere. */
  static async start(address: string, port: number, to?: string): Promise<Relay> {
    const server = createServer()
    const relay = new Relay(server)
    server.on('connection', (socket) => {
      relay.#keep(socket)
      if (to === undefined) return
      const onward = connect(port, to)
      relay.#keep(onward)
      socket.pipe(onward).pipe(socket)
    })
    server.listen(port, address)
    await once(server, 'listening')
    return relay
  }

  get connections(): number {
    return this.#sockets.size
  }

  /** Open connections hear nothing any more, not even that they ended; new ones get in. */
  mute(): void {
    for (const socket of this.#sockets) socket.unpipe().pause()
  }

  /** No connection stays open, and no new one gets in. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }
}
