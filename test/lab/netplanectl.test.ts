// SPDX-License-Identifier: Apache-2.0
/** netplanectl on nodes whose programs have made the flows, with agents and without. Root. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { workloadInterface } from '#lib/model/pod.ts'
import { hostPort } from '#lib/base/ip.ts'
import { startFlow, type Running } from '../../lab/traffic/traffic.ts'
import type { FlowResult } from '../../lab/tools/results.ts'
import { Cluster, peers } from '../../testkit/lab/cluster.ts'
import { addressOf, FAMILIES, METRICS_PORT, PROTOS, type Family, type NodeName } from '../../testkit/lab/manifests.ts'
import { programCommand } from '../../testkit/base/program.ts'

const cluster = new Cluster('ctl')
const service = cluster.service()
/** of the client, as the pods see it */
const client = new Map<Family, string>()
let flow: Running<FlowResult>

beforeAll(async () => {
  await cluster.up()
  cluster.put('pools', [pool('v4', '10.29.0.0/16'), pool('v6', 'fd00:2900::/32')])
  const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }
  service.put({ type: 'NodePort', endpoints: ['b-1'], more: affinity })
  await cluster.reaches('client', service.onEvery('a'), ['b-1'])
  for (const family of FAMILIES) {
    const [address = ''] = peers(await cluster.ask('client', service.on('a', family)))
    client.set(family, address)
  }
  flow = await startFlow(cluster.lab, { from: 'client', to: service.onEvery('a'), rate: 20 })
})
afterAll(async () => {
  await cluster.down()
})

function pool(name: string, cidr: string): object {
  return { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name }, spec: { cidr, vxlanMode: 'Always', natOutgoing: true } }
}

function like(fields: object): unknown {
  return expect.objectContaining(fields)
}

function having(items: readonly unknown[]): unknown {
  return expect.arrayContaining([...items])
}

/** What the command prints on this node; it has to end well. */
async function print(node: NodeName, line: string): Promise<string> {
  return await cluster.lab.mustRun(`node/${node}`, [...programCommand('cli'), ...line.split(' ')])
}

/** Its records. */
async function records(node: NodeName, line: string): Promise<readonly unknown[]> {
  const parsed: unknown = JSON.parse(await print(node, `${line} --json`))
  if (!Array.isArray(parsed)) throw new Error(`${line} --json is no array`)
  const list: readonly unknown[] = parsed
  return list
}

/** Sooner or later: that a flow has gone both ways, programs note when they refresh its entry. */
function shows(node: NodeName, line: string): ReturnType<typeof expect.poll> {
  return expect.poll(() => records(node, line), { interval: 500 })
}

function backend(family: Family): { readonly address: string; readonly port: number } {
  return { address: addressOf('b-1', family), port: 8080 }
}

function anyAddress(family: Family): string {
  return family === 4 ? '0.0.0.0' : '::'
}

/** All that the commands have to say of what the traffic was. */
async function expectAll(): Promise<void> {
  for (const family of FAMILIES) {
    const [address = '', nodeA, nodeB] = [client.get(family), addressOf('node/a', family), addressOf('node/b', family)]
    for (const proto of PROTOS) {
      const name = proto.toUpperCase()
      await expectService({ family, proto })
      // at the client's node: to the other one, by the tunnel; at the backend's: out of the tunnel, to the pod
      const asked = `--proto ${proto} --addr ${address}`
      const state = proto === 'tcp' ? 'open' : 'two-way'
      const node = { address: nodeA, port: service.nodePort }
      await shows('a', `bpf conntrack ${asked}`).toContainEqual(
        like({
          proto: name,
          state,
          from: like({ address }),
          to: node,
          translated: { from: like({ address }), to: backend(family) },
          there: like({ by: 'tunnel', node: nodeB }),
          half: false,
        }),
      )
      const pod = workloadInterface({ namespace: 'default', name: 'b-1' }, 'npl')
      await shows('b', `bpf conntrack ${asked}`).toContainEqual(
        like({
          proto: name,
          to: backend(family),
          there: like({ by: 'pod', interface: pod, flags: having(['tunnelled']) }),
          half: false,
        }),
      )
    }
    const frontends = having([`${hostPort(anyAddress(family), service.nodePort)}/TCP`])
    expect(await records('a', 'bpf affinity')).toContainEqual(like({ client: address, backend: backend(family), frontends }))
  }
}

async function expectService({ family, proto }: { family: Family; proto: 'tcp' | 'udp' }): Promise<void> {
  const choice = {
    backends: [like({ ...backend(family), slot: 0, node: addressOf('node/b', family), live: ['chosen'] })],
  }
  for (const frontend of [
    { address: service.address(family), port: 80 },
    { address: anyAddress(family), port: service.nodePort },
  ])
    expect(await records('a', `bpf nat --proto ${proto} --port ${frontend.port} --addr ${frontend.address}`)).toEqual([
      like({
        frontend,
        proto: proto.toUpperCase(),
        affinity: 10_800,
        inside: like(choice),
        outside: like(choice),
      }),
    ])
}

describe('with agents', () => {
  test('services, flows and affinity, of both families', expectAll)

  test('each flow once, and both entries of each', async () => {
    const flows = await records('a', `bpf conntrack --port ${service.nodePort}`)
    expect(flows.filter((one) => JSON.stringify(one).includes('"half":true'))).toEqual([])
    const ends = flows.map((one) => JSON.stringify(one).replace(/.*("proto":"\w+").*?("from".*?"translated").*/, '$1$2'))
    expect(new Set(ends).size).toBe(ends.length)
    expect(ends.length).toBeGreaterThanOrEqual(4)
  })

  test('routes, of every kind there is', async () => {
    const routes = await records('a', 'bpf routes')
    for (const family of FAMILIES) {
      const [all, range, bits] = family === 4 ? ['10.29.0.0/16', '10.29.2.0/24', 32] : ['fd00:2900::/32', 'fd00:2900:2::/64', 128]
      const one = (kind: string, prefix: string, more: object = {}): unknown => like({ kind, prefix, ...more })
      expect(routes).toEqual(
        having([
          one('local-pod', `${addressOf('a-1', family)}/${bits}`, {
            interface: workloadInterface({ namespace: 'default', name: 'a-1' }, 'npl'),
            flags: having(['masquerade']),
          }),
          one('self', `${addressOf('node/a', family)}/${bits}`),
          one('node', `${addressOf('node/b', family)}/${bits}`),
          one('service', `${service.address(family)}/${bits}`),
          one('overlay', range, { node: addressOf('node/b', family) }),
          one('inside', all),
        ]),
      )
    }
  })

  test('counters, with the names and numbers of the metrics', async () => {
    const { text } = await cluster.lab.agents.get({ node: 'a', port: METRICS_PORT, path: '/metrics' })
    const lines = [...text.matchAll(/^netplane_(drops|packets)_total\{\w+="(\w+)"\} (\d+)$/gm)]
    const metrics = lines.map(([, kind, name, value]) => ({ kind: kind === 'drops' ? 'drop' : 'event', name, value: Number(value) }))
    const counters = await records('a', 'bpf counters --all')
    const names = (list: readonly unknown[]): unknown[] => list.map((one) => JSON.stringify(one).replace(/"value":\d+/, ''))
    expect(names(counters)).toEqual(names(metrics))
    // no client begins a flow through the tunnel meanwhile
    const sent = (list: readonly unknown[]): unknown => list.find((one) => JSON.stringify(one).includes('"tunnel_sent"'))
    expect(sent(counters)).toEqual(sent(metrics))
    expect(sent(counters)).not.toMatchObject({ value: 0 })
  })

  test('tables, as people read them', async () => {
    const nodePort = `:${service.nodePort}`
    expect(await print('a', `bpf nat --port ${service.nodePort}`)).toMatch(
      new RegExp(
        String.raw`^FRONTEND +FOR +BACKEND[^]*^0\.0\.0\.0${nodePort}/TCP +all +10\.29\.2\.1:8080 +172\.29\.0\.2 +chosen +- +node-port`,
        'm',
      ),
    )
    expect(await print('a', 'bpf conntrack --proto udp')).toMatch(
      new RegExp(
        String.raw`^UDP +two-way +\S+ +\[\S+\]:\d+ +\[fd00:29::1\]${nodePort} +to \[fd00:2900:2::1\]:8080 +tunnel fd00:29::2 +device eth0`,
        'm',
      ),
    )
    expect(await print('a', 'bpf affinity')).toMatch(/^CLIENT +SERVICE +BACKEND +AGE\n/)
    expect(await print('a', 'bpf routes')).toMatch(/^local-pod +10\.29\.1\.1\/32 +npl\w+ +masquerade$/m)
    expect(await print('a', 'bpf counters')).toMatch(/^event +tunnel_sent +[1-9]\d*$/m)
  })
})

test('without an agent netplanectl says the same, and flows have gone on', async () => {
  for (const node of ['a', 'b']) await cluster.lab.agents.stop(node, 'SIGKILL')
  await expectAll()
  const { streams } = await flow.stop()
  expect(streams.map(({ received }) => received > 0)).toEqual(service.onEvery('a').map(() => true))
  expect(streams.filter(({ lost, reconnects }) => lost > 0 || reconnects > 0)).toEqual([])
})
