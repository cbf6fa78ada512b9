// SPDX-License-Identifier: Apache-2.0
/** Whether something listens at a place. Layer: lib/base. */
import { Socket } from 'node:net'

/** Longer than a lost SYN needs. */
export const CONNECT_MS = 1500

/** This end of an exchange, as its socket has it. */
export interface LocalEnd {
  readonly address: string
  readonly port: number
}

/** A TCP connection that was accepted in time, and is closed at once; undefined: none was. `descriptor`: of the socket
 * that asks, where that is not to be in this process's own network namespace. */
export function connects(host: string, port: number, descriptor?: number): Promise<LocalEnd | undefined> {
  return new Promise((resolve) => {
    const socket = new Socket(descriptor === undefined ? {} : { fd: descriptor, readable: false })
    const end = (local?: LocalEnd): void => {
      socket.destroy()
      resolve(local)
    }
    socket.once('connect', () => {
      end({ address: socket.localAddress ?? '', port: socket.localPort ?? 0 })
    })
    for (const event of ['timeout', 'error'])
      socket.once(event, () => {
        end()
      })
    socket.setTimeout(CONNECT_MS)
    socket.connect({ host, port })
  })
}
