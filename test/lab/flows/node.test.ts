// SPDX-License-Identifier: Apache-2.0
/** Flows of a cluster's traffic, as agents tell them to netplanectl. Root. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { FlowUpdate, FlowWindow } from '#lib/flows/flow.ts'
import { waitFor } from '../../../lab/wait.ts'
import { Cluster } from '../../../testkit/lab/cluster.ts'
import { addressOf, FAMILIES, type NodeName } from '../../../testkit/lab/manifests.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const cluster = new Cluster('flows')
const service = cluster.service()
const CLI = [...programCommand('cli'), 'flows', '--node']
const FLOWS_SOCKET = '/run/netplane/flows.sock'
/** of what is to be told at once: goals.md has 2 s, beside the reader's own start */
const SOON_MS = 4000
/** a window and what comes after it */
const WINDOW_MS = 25_000

beforeAll(async () => {
  await cluster.up()
  service.put({ type: 'NodePort', endpoints: ['b-1'] })
  await cluster.reaches('client', service.onEvery('a'), ['b-1'])
})
afterAll(async () => {
  await cluster.down()
})

/** What netplanectl prints on one node, from its start on. */
class Reader {
  readonly updates: FlowUpdate[] = []
  readonly #child: ChildProcess

  constructor(node: NodeName, flags: readonly string[] = []) {
    this.#child = cluster.lab.spawn(`node/${node}`, [...CLI, '--follow', '--output', 'json', ...flags])
    const { stdout, stderr } = this.#child
    if (stdout !== null) createInterface({ input: stdout }).on('line', (line) => this.updates.push(JSON.parse(line) as FlowUpdate))
    stderr?.resume()
  }

  /** The first window of which this is true. */
  async find(isIt: (window: FlowWindow) => boolean, timeoutMs: number): Promise<FlowWindow> {
    const found = await waitFor(() => this.updates.map(({ window }) => window).find(isIt), { timeoutMs, everyMs: 20 })
    if (found === undefined) throw new Error(`not told: ${JSON.stringify(this.updates.slice(-3)).slice(0, 2000)}`)
    return found
  }

  /** Sums of the last word on each window. */
  total(isIt: (window: FlowWindow) => boolean): FlowWindow['counts'] {
    const byWindow = new Map(this.updates.map(({ window }) => [`${window.start} ${JSON.stringify(window.key)}`, window]))
    const all = [...byWindow.values()].filter(isIt).map(({ counts }) => counts)
    const sum = (name: keyof FlowWindow['counts']): number => all.reduce((total, counts) => total + counts[name], 0)
    return {
      ...{ packetsIn: sum('packetsIn'), packetsOut: sum('packetsOut'), bytesIn: sum('bytesIn'), bytesOut: sum('bytesOut') },
      ...{ started: sum('started'), completed: sum('completed'), live: sum('live') },
    }
  }

  /** Resolves when it has gone. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGTERM')
    await closed
  }
}

let a: Reader
let b: Reader

beforeEach(async () => {
  ;[a, b] = [new Reader('a'), new Reader('b')]
  // netplanectl has asked: programs tell from now on
  const haveTold = async (): Promise<true | undefined> => ((await tells('a')) && (await tells('b')) ? true : undefined)
  expect(await waitFor(haveTold, { timeoutMs: HANG_MS, everyMs: 200 })).toBe(true)
})
afterEach(async () => {
  await Promise.all([a.close(), b.close()])
})

/** Its programs count and tell, this reader too: they do so for a minute after the last one has gone. */
async function tells(node: NodeName): Promise<boolean> {
  const readers = await cluster.lab.mustRun(`node/${node}`, ['ss', '-Hx', 'state', 'connected', 'src', FLOWS_SOCKET])
  if (readers === '') return false
  const dump = await cluster.lab.mustRun(`node/${node}`, ['bpftool', 'map', 'dump', 'pinned', '/sys/fs/bpf/netplane/maps/np_state'])
  return dump.includes('"accounts": 1')
}

const isBetween =
  (from: string, to: string, reporter: string) =>
  (window: FlowWindow): boolean =>
    window.key.source.name === from && window.key.dest.name === to && window.key.reporter === reporter

test('a connection between pods of two nodes is told by both within two seconds, and both have counted the same', async () => {
  await cluster.ask('shell-a', { proto: 'tcp', address: addressOf('b-1', 4), port: 8082 }, { count: 10, reply: 3000 })
  const at =
    (reporter: string) =>
    (window: FlowWindow): boolean =>
      isBetween('shell-a', 'b-1', reporter)(window) && window.key.destPort === 8082
  const [sent, got] = [at('Src'), at('Dst')]
  expect((await a.find(sent, SOON_MS)).key).toMatchObject({
    action: 'Allow',
    destPort: 8082,
    protocol: 'tcp',
    enforced: [{ kind: 'Profile', name: 'kns.default' }],
  })
  await b.find(got, SOON_MS)
  await b.find((window) => got(window) && window.counts.bytesIn > 0, WINDOW_MS)
  await a.find((window) => sent(window) && window.counts.bytesIn > 0, WINDOW_MS)
  const [source, dest] = [a.total(sent), b.total(got)]
  expect([source.started, dest.started]).toEqual([10, 10])
  expect([source.bytesIn, source.bytesOut, source.packetsIn, source.packetsOut]).toEqual([
    ...[dest.bytesOut, dest.bytesIn, dest.packetsOut, dest.packetsIn],
  ])
  expect(source.bytesIn).toBeGreaterThan(10 * 3000)
})

test('the node that translates tells the service that was meant', async () => {
  await cluster.ask('client', service.on('b', 4), { count: 3 })
  const incoming = (window: FlowWindow): boolean => window.key.dest.name === 'b-1' && window.key.service !== undefined
  expect((await b.find(incoming, SOON_MS)).key).toMatchObject({ source: { type: 'Network', name: 'pvt' }, service: { name: service.name } })
})

test.each(['tcp', 'udp'] as const)('the service that a pod meant by %s is told by its node', async (proto) => {
  const isTold = (window: FlowWindow): boolean =>
    isBetween('shell-a', 'b-1', 'Src')(window) && window.key.protocol === proto && window.key.destPort === 8080
  const direct = (window: FlowWindow): boolean => isTold(window) && window.key.service === undefined
  for (const family of FAMILIES) await cluster.ask('shell-a', service.at(family, proto), { count: 3 })
  const meant = (window: FlowWindow): boolean => isTold(window) && window.key.service !== undefined
  expect((await a.find(meant, SOON_MS)).key).toMatchObject({ destPort: 8080, service: { name: service.name, portName: proto, port: 80 } })
  await a.find((window) => meant(window) && window.counts.started === 6 && window.counts.bytesIn > 0, WINDOW_MS)
  expect(a.total(direct).started).toBe(0)
})

test('an agent that ends and comes back tells nothing twice and loses nothing, also of what happens meanwhile', async () => {
  const at =
    (reporter: string) =>
    (window: FlowWindow): boolean =>
      isBetween('shell-a', 'b-1', reporter)(window) && window.key.destPort === 8081
  const ask = (): Promise<unknown> =>
    cluster.ask('shell-a', { proto: 'tcp', address: addressOf('b-1', 6), port: 8081 }, { count: 5, reply: 2000 })
  await ask()
  await a.find(at('Src'), SOON_MS)
  await cluster.lab.agents.stop('a', 'SIGTERM')
  await ask()
  await cluster.lab.agents.start('a')
  await ask()
  const whole = (reader: Reader, reporter: string): Promise<true | undefined> =>
    waitFor(() => (reader.total(at(reporter)).completed >= 15 ? true : undefined), { timeoutMs: WINDOW_MS, everyMs: 100 })
  expect([await whole(a, 'Src'), await whole(b, 'Dst')], JSON.stringify([a.total(at('Src')), b.total(at('Dst'))])).toEqual([true, true])
  const [source, dest] = [a.total(at('Src')), b.total(at('Dst'))]
  expect(source).toMatchObject({ started: 15, completed: 15, bytesIn: dest.bytesOut, bytesOut: dest.bytesIn, packetsIn: dest.packetsOut })
})

test('what a policy denies is told within two seconds, with its rule [once]', async () => {
  const metadata = { name: 'one-port', namespace: 'default' }
  const spec = { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 8080 }] }] }
  cluster.put('policy', [{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec }])
  await cluster.lab.sync()
  const outcomes = await cluster.ask('shell-a', { proto: 'tcp', address: addressOf('b-1', 4), port: 8081 }, { timeoutMs: 500 })
  expect(outcomes).toMatchObject([{ failed: expect.any(String) as string }])
  const told = await b.find((window) => window.key.action === 'Deny' && window.key.destPort === 8081, SOON_MS)
  const trigger = { kind: 'NetworkPolicy', tier: 'default', namespace: 'default', name: 'one-port' }
  expect(told.key.enforced).toEqual([{ kind: 'EndOfTier', tier: 'default', namespace: '', name: '', action: 'Deny', rule: -1, trigger }])
  expect(told.key).toMatchObject({ reporter: 'Dst', source: { name: 'shell-a' }, dest: { name: 'b-1' } })
  cluster.remove('policy')
  await cluster.lab.sync()
})
