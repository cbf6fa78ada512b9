// SPDX-License-Identifier: Apache-2.0
/** The inspector of a node's agent at a port of the machine: it listens inside of the node alone. Layer: lab. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { addAbortSignal, pipeline } from 'node:stream'
import { InternalError } from '#lib/base/errors.ts'
import { LabError } from '../errors.ts'
import type { Lab } from '../lab.ts'
import { toolCommand } from '../paths.ts'

/** Where Node.js opens it. */
export const INSPECTOR_PORT = 9229

/** Has the agent open its inspector, and relays connections to it from the loopback's `port` until `signal` aborts. */
export async function relayInspector(
  lab: Lab,
  node: string,
  options: { readonly port: number; readonly signal: AbortSignal },
): Promise<void> {
  const { port, signal } = options
  const pid = lab.agents.pid(node)
  if (pid === undefined) throw new LabError(`agent of node ${node}`, 'does not run')
  process.kill(pid, 'SIGUSR1')
  const { status, text } = await lab.agents.get({ node, port: INSPECTOR_PORT, path: '/json/version', waitMs: 10_000 })
  if (status !== 0) throw new LabError(`agent of node ${node}`, `opens no inspector: ${text}`)
  const server = createServer((client) => {
    addAbortSignal(signal, client)
    relay(lab, node, client)
  })
  await once(server.listen({ port, host: '127.0.0.1', signal }), 'listening')
}

function relay(lab: Lab, node: string, client: Socket): void {
  const command = [...toolCommand('connect'), String(INSPECTOR_PORT)]
  const { stdin, stdout } = lab.spawn({ kind: 'node', node }, command, ['pipe', 'pipe', 'inherit'])
  if (stdin === null || stdout === null) throw new InternalError('the relay needs pipes')
  pipeline(client, stdin, () => undefined)
  pipeline(stdout, client, () => undefined)
}
