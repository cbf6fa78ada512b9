// SPDX-License-Identifier: Apache-2.0
/** Ports for servers that begin to listen later, or once more. Layer: testkit. */
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'
import { parsePort, type Port } from '#lib/base/ip.ts'

/** The kernel gives none below 32768 to connections, and to servers that want any: what is free stays so. Each worker
 * has some of its own. */
const [FIRST, EACH, WORKERS] = [12_000, 200, 80]
let asked = 0

/** Of TCP on every address; for UDP nothing of the tests takes these. */
export async function freePort(): Promise<Port> {
  const own = FIRST + ((process.pid + threadId) % WORKERS) * EACH
  for (let tries = 0; tries < EACH; tries++) {
    const port = own + (asked++ % EACH)
    if (await isFree(port)) return parsePort(port)
  }
  throw new Error(`no port from ${own} to ${own + EACH - 1} is free`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })
}
