// SPDX-License-Identifier: Apache-2.0
/** A TCP connection of the node, for programs that ask the kernel for its sockets. Layer: test. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface Connection extends Disposable {
  readonly client: Socket
  readonly server: Server
}

/** Both ends are in this network namespace. */
export async function connection(from: { readonly addr: string; readonly port?: number }, to: string, port: number): Promise<Connection> {
  const server = createServer((socket) => socket.on('error', () => undefined)).listen(port, to)
  await once(server, 'listening')
  const client = connect({ host: to, port, localAddress: from.addr, ...(from.port === undefined ? {} : { localPort: from.port }) })
  client.on('error', () => undefined)
  await once(client, 'connect')
  return {
    client,
    server,
    [Symbol.dispose]: () => {
      client.resetAndDestroy()
      server.close()
    },
  }
}
