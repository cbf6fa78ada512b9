// SPDX-License-Identifier: Apache-2.0
/** A client that crowds the ports at which load balancers ask for the node's health keeps out neither them nor the
 * agent's own work. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AgentProcess, ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { service } from './manifests.ts'
import { makeNode, rows } from './node.ts'

const PORT = 10256
const NODE = '192.0.2.1'
const CROWD = 600
const CONNECT = `require('node:net').connect({ port: ${PORT}, host: '${NODE}', localAddress: '192.0.2.66' }).on('error', () => undefined)`
const REQUESTS = `'GET /healthz HTTP/1.1\\r\\nhost: node\\r\\n\\r\\n'.repeat(2000)`
/** They say nothing, or half of it. */
const IDLE = (
  text: string,
): string => `for (let at = 0; at < ${CROWD}; at++) ${CONNECT}.on('connect', function () { this.write('${text}') })
  setTimeout(() => console.log('ready'), 1000)`
/** They wait for no answer. */
const PIPELINED = `const begin = () => {
    const socket = ${CONNECT}
    const more = () => { while (!socket.destroyed && socket.write(${REQUESTS})); }
    socket.on('connect', more).on('drain', more).on('close', () => setTimeout(begin, 10)).resume()
  }
  for (let at = 0; at < 16; at++) begin()
  setTimeout(() => console.log('ready'), 500)`

let machine: ScratchNode
let outside: ChildProcess
let agent: AgentProcess
let crowd: ChildProcess | undefined

beforeEach(async () => {
  machine = await makeNode()
  outside = machine.spawn(['unshare', '--net', '--', 'sh', '-c', 'echo ready; exec sleep 600'])
  if (outside.stdout !== null) await once(outside.stdout, 'data')
  machine.sh(`
    ip link set wire0 netns ${outside.pid}
    nsenter --target ${outside.pid} --net sh -ec '
      ip link set lo up; ip link set wire0 up
      for host in 66 67; do ip addr add 192.0.2.$host/24 dev wire0; done'`)
  agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.event('proxy-health.listening')
})

afterEach(async () => {
  crowd?.kill('SIGKILL')
  outside.kill('SIGKILL')
  await machine[Symbol.asyncDispose]()
})

async function begin(script: string): Promise<void> {
  crowd = machine.spawn(['nsenter', '--target', String(outside.pid), '--net', process.execPath, '-e', script])
  if (crowd.stdout !== null) await once(crowd.stdout, 'data')
}

/** What a load balancer hears, at another address than the crowd. */
function health(): string {
  const curl = `curl -s -o /dev/null -w %{http_code} --max-time 5 --interface 192.0.2.67 http://${NODE}:${PORT}/healthz || true`
  return machine.sh(`nsenter --target ${outside.pid} --net ${curl}`)
}

describe.each([
  ['connections that say nothing', IDLE('')],
  ['connections that say half of what they want', IDLE('GET /healthz HTTP/1.1\\r\\n')],
  ['requests that wait for no answer', PIPELINED],
])('%s', (_, script) => {
  test('load balancers hear of the node, and a change of a Service is done at once', { timeout: 60_000 }, async () => {
    await begin(script)
    expect(Array.from({ length: 5 }, health)).toEqual(['200', '200', '200', '200', '200'])
    let last = 20
    await withinBestOfThree(1000, async () => {
      const before = await rows(machine, 'np_frontends')
      const address = `10.96.0.${last++}`
      const other = {
        ...service.spec,
        type: 'ClusterIP',
        clusterIP: address,
        clusterIPs: [address],
        ports: [{ port: 80, protocol: 'TCP' }],
      }
      const since = performance.now()
      machine.put(`other-${last}.json`, [{ ...service, metadata: { ...service.metadata, name: `other-${last}` }, spec: other }])
      while ((await rows(machine, 'np_frontends')) === before) await new Promise((resolve) => setTimeout(resolve, 20))
      return performance.now() - since
    })
  })
})
