// SPDX-License-Identifier: Apache-2.0
/** Servers that begin to listen. Layer: lib/base. */
import { mkdirSync, rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { dirname } from 'node:path'

export interface Place {
  /** undefined: every address of this machine, of both families */
  readonly host: string | undefined
  /** 0: any free one */
  readonly port: number
}

/** Resolves with the port; rejects with Node's error (EADDRINUSE). */
export function listenAt(server: Pick<Server, 'once' | 'off' | 'listen' | 'address'>, { host, port }: Place): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** On a socket that root alone may ask, in the place of one that another process has left there. Rejects when there is
 * no such place. */
export async function listenForRoot(server: Pick<Server, 'once' | 'off' | 'listen'>, path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    const mask = process.umask(0o177)
    try {
      server.once('error', reject)
      server.listen(path, () => {
        server.off('error', reject)
        resolve()
      })
    } finally {
      process.umask(mask)
    }
  })
}
