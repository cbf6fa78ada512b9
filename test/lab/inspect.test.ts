// SPDX-License-Identifier: Apache-2.0
/** An inspector attached to an agent of the lab. Root, and a built agent. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { Lab } from '../../lab/lab.ts'
import { relayInspector } from '../../lab/processes/inspector.ts'
import { freePort } from '../../testkit/base/free-port.ts'
import { Manifests, node } from './cluster.ts'

const ENTRY = join(packageRoot(), 'dist/agent/main.js')

/** URL of the source map of each script of the agent, by the script's path, as a debugger hears of them. */
async function sourceMaps(url: string): Promise<ReadonlyMap<string, string>> {
  const socket = new WebSocket(url)
  const maps = new Map<string, string>()
  const told = new Promise<void>((resolve, reject) => {
    socket.onerror = () => reject(new Error(`${url} does not answer`))
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Debugger.enable' }))
    socket.onmessage = ({ data }) => {
      const message: unknown = JSON.parse(String(data))
      const script = textAt(message, 'params.url') ?? ''
      if (script.startsWith('file:')) maps.set(fileURLToPath(script), textAt(message, 'params.sourceMapURL') ?? '')
      if (Reflect.get(Object(message), 'id') === 1) resolve()
    }
  })
  await told
  socket.close()
  return maps
}

test('the inspector of an agent is reached from outside of its node, and finds its sources', async () => {
  using manifests = new Manifests([node('a', '172.31.7.2')])
  await using lab = await Lab.up({ name: 'tinspect', resources: manifests.dir, servers: false })
  const port = await freePort()
  const ended = new AbortController()
  await relayInspector(lab, 'a', { port, signal: ended.signal })
  const targets: unknown = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()
  const maps = await sourceMaps(textAt(listAt({ targets }, 'targets')[0], 'webSocketDebuggerUrl') ?? '')
  ended.abort()

  const map = maps.get(ENTRY)
  const text = readFileSync(resolve(dirname(ENTRY), map ?? ''), 'utf8')
  const sources = [...text.matchAll(/"(\.\.[^"]+\.ts)"/g)].map(([, source = '']) => resolve(dirname(ENTRY), source))
  expect(sources).toContain(join(packageRoot(), 'agent/main.ts'))
  expect(sources.filter((source) => !existsSync(source))).toEqual([])
  await expect(fetch(`http://127.0.0.1:${port}/json/list`)).rejects.toThrow()
  await lab.agents.stop('a', 'SIGKILL')
  await expect(relayInspector(lab, 'a', { port, signal: ended.signal })).rejects.toThrow('agent of node a: does not run')
})
