// SPDX-License-Identifier: Apache-2.0
/** The demo's service from every place by every address, many messages on one socket: the second packet must do as
 * well as the first. Root. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import { Lab } from '../../lab/lab.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { request, startFlow } from '../../lab/traffic/traffic.ts'
import type { Endpoint } from '../../lab/tools/address.ts'
import { receiveDatagrams } from './datagrams.ts'
import { programCommand } from '../../testkit/base/program.ts'

const PROTOS = ['tcp', 'udp'] as const
const CLUSTER = ['10.96.0.80', 'fd00:96::80'] as const
const NODE_A = ['172.30.0.1', 'fd00:30::1'] as const
const NODE_B = ['172.30.0.2', 'fd00:30::2'] as const
/** web-1 is on node-b. */
const POD = ['10.244.2.11', 'fd00:244:2::11'] as const
const resources = `${packageRoot()}/demo/manifests`
let lab: Lab

beforeAll(async () => {
  const agentCommand = programCommand('agent')
  lab = await Lab.up({ name: 'tservices', resources, agentCommand })
})
afterAll(async () => {
  await lab.down()
})

function endpoints(addresses: readonly string[], port: number): Endpoint[] {
  return addresses.flatMap((address) => PROTOS.map((proto) => ({ proto, address, port })))
}

/** A node's own port over UDP is left out: only connect-time translation could reach it there, and that leaves UDP
 * alone. */
const CASES = [
  { from: 'client', to: [...endpoints(NODE_A, 30080), ...endpoints(NODE_B, 30080)] },
  { from: 'far', to: [...endpoints(NODE_A, 30080), ...endpoints(NODE_B, 30080)] },
  { from: 'shell-a', to: [...endpoints(CLUSTER, 80), ...endpoints(NODE_A, 30080), ...endpoints(NODE_B, 30080), ...endpoints(POD, 8080)] },
  { from: 'shell-b', to: [...endpoints(CLUSTER, 80), ...endpoints(NODE_A, 30080), ...endpoints(NODE_B, 30080), ...endpoints(POD, 8080)] },
  { from: 'node/node-a', to: [...endpoints(CLUSTER, 80), ...endpoints(NODE_B, 30080), ...endpoints(POD, 8080)] },
  { from: 'node/node-b', to: [...endpoints(CLUSTER, 80), ...endpoints(NODE_A, 30080), ...endpoints(POD, 8080)] },
]

describe('a steady flow', () => {
  test.each(CASES)('from $from', async ({ from, to }) => {
    const flow = await startFlow(lab, { from, to, rate: 50, establishMs: 5000, drainMs: 500 })
    // all streams send in step: what UDP has come to, TCP was given as well
    await receiveDatagrams(lab, from, 20 * to.filter(({ proto }) => proto === 'udp').length)
    const { streams } = await flow.stop()
    expect(streams.filter((stream) => stream.lost > 0 || stream.reconnects > 0 || stream.received < 10)).toEqual([])
    expect(streams).toHaveLength(to.length)
  })
})

describe('much data in both directions, through the node without the pod', () => {
  test.each(NODE_A)('%s', async (address) => {
    const to: Endpoint = { proto: 'tcp', address, port: 30080 }
    const result = await request(lab, { from: 'client', to, payload: 500_000, reply: 5_000_000, timeoutMs: 10_000 })
    expect(result, hostPort(address, 30080)).toMatchObject({ ok: 1, errors: {}, pods: { 'web-1': 1 } })
  })
})
