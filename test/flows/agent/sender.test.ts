// SPDX-License-Identifier: Apache-2.0
/** An agent's sender and an aggregator, over real connections. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { createLog } from '#lib/obs/log.ts'
import { FlowSender, type FlowTarget } from '#agent/flows/sender.ts'
import { GrpcServer } from '#flows/grpc/server.ts'
import type { TlsFiles } from '#flows/grpc/tls.ts'
import { waitFor } from '../../../lab/wait.ts'
import { WEB_TO_DB, windowOf } from '../made.ts'
import { Served } from '../served.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const folder = mkdtempSync(join(tmpdir(), 'netplane-flows-tls-'))
const file = (name: string): string => join(folder, name)
const log = createLog({ level: 'silent' })
const SOON = { timeoutMs: HANG_MS, everyMs: 20 }

beforeAll(() => {
  for (const authority of ['ca', 'other-ca']) make(authority, ['-x509', '-subj', `/CN=${authority}`])
  issue('server', 'ca', 'flows')
  issue('n1', 'ca', 'n1')
  issue('stranger', 'other-ca', 'n1')
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}

function make(name: string, more: readonly string[]): void {
  const out = more.includes('-x509') ? `${name}.crt` : `${name}.csr`
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file(`${name}.key`)]
  openssl('req', ...key, ...more, '-out', file(out), '-days', '2')
}

function issue(name: string, authority: string, subject: string): void {
  make(name, ['-subj', `/CN=${subject}`, '-addext', 'subjectAltName=IP:127.0.0.1'])
  const by = [
    '-CA',
    file(`${authority}.crt`),
    '-CAkey',
    file(`${authority}.key`),
    '-CAcreateserial',
    '-days',
    '2',
    '-copy_extensions',
    'copy',
  ]
  openssl('x509', '-req', '-in', file(`${name}.csr`), ...by, '-out', file(`${name}.crt`))
}

const SERVER: TlsFiles = { cert: file('server.crt'), key: file('server.key'), ca: file('ca.crt') }

function asNode(name: string, port: number, ca = 'ca'): FlowTarget {
  return { url: `https://127.0.0.1:${port}`, tls: { ca: file(`${ca}.crt`), cert: file(`${name}.crt`), key: file(`${name}.key`) } }
}

function update(node: string, sequence: number, destPort = 80): FlowUpdate {
  return { node, sequence, window: windowOf({ key: { ...WEB_TO_DB, destPort } }) }
}

/** What an agent would have to tell. */
class Told {
  readonly updates: FlowUpdate[] = []
  readonly listeners = new Set<(updates: readonly FlowUpdate[]) => void>()
  readonly facts = { connections: 0, keys: 0, lost: 3, untaken: 1, readers: 0 }
  lost = 0

  tell(...updates: readonly FlowUpdate[]): void {
    this.updates.push(...updates)
    for (const listener of this.listeners) listener(updates)
  }

  lose(windows: number): void {
    this.lost += windows
  }

  listen(listener: (updates: readonly FlowUpdate[]) => void): Disposable {
    if (this.updates.length > 0) listener([...this.updates])
    this.listeners.add(listener)
    return { [Symbol.dispose]: () => this.listeners.delete(listener) }
  }
}

class Sending {
  readonly told = new Told()
  readonly states: string[] = []
  readonly #stop = new AbortController()
  readonly #running: Promise<void>

  constructor(target: FlowTarget) {
    const say = (state: string): void => {
      if (this.states.at(-1) !== state) this.states.push(state)
    }
    const health = { expect: () => undefined, pass: () => say('told'), fail: (_: string, reason: string) => say(reason) }
    this.#running = new FlowSender({ target, flows: this.told, clock: systemClock, log, health }).run(this.#stop.signal)
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}

let served: Served | undefined
let sending: Sending | undefined
const stack: AsyncDisposable[] = []

afterEach(async () => {
  await sending?.end()
  for (const one of stack.splice(0)) await one[Symbol.asyncDispose]()
  await served?.[Symbol.asyncDispose]()
})

async function listen(
  aggregator: Served['aggregator'],
  tls?: TlsFiles,
  port = 0,
): Promise<{ readonly server: GrpcServer; readonly port: number }> {
  const server = new GrpcServer(aggregator, tls)
  stack.push(server)
  return { server, port: await server.start('127.0.0.1', port) }
}

async function reached(count: number): Promise<boolean> {
  return (await waitFor(() => ((served?.aggregator.count.updates.new ?? 0) >= count ? true : undefined), SOON)) === true
}

test('what a node tells is taken, each once, also after the aggregator was away', async () => {
  served = await Served.start()
  const first = await listen(served.aggregator)
  sending = new Sending({ url: `http://127.0.0.1:${first.port}`, tls: undefined })
  sending.told.tell(update('n1', 1, 1), update('n1', 2, 2))
  expect(await reached(2)).toBe(true)
  await first.server[Symbol.asyncDispose]()
  sending.told.tell(update('n1', 3, 3))
  await waitFor(() => (sending?.states.length === 2 ? true : undefined), SOON)
  await listen(served.aggregator, undefined, first.port)
  expect(await reached(3)).toBe(true)
  await waitFor(() => (served?.aggregator.count.updates.new === 3 && sending?.states.at(-1) === 'told' ? true : undefined), SOON)
  expect(served.aggregator.count.updates).toMatchObject({ new: 3 })
  expect(served.aggregator.nodes.get('n1')).toMatchObject({ lost: 4 })
  expect(sending.states).toEqual(['told', expect.stringContaining('does not take this node'), 'told'])
})

test('by TLS a node tells of itself, and of no other', async () => {
  served = await Served.start()
  const { port } = await listen(served.aggregator, SERVER)
  sending = new Sending(asNode('n1', port))
  sending.told.tell(update('n1', 1))
  expect(await reached(1)).toBe(true)
  sending.told.tell(update('n2', 2))
  await waitFor(() => (sending?.states.some((state) => state.includes('n1 tells of node n2')) ? true : undefined), SOON)
  expect(sending.states).toContainEqual(expect.stringContaining('n1 tells of node n2'))
  expect(served.aggregator.nodes.has('n2')).toBe(false)
})

test.each([
  ['an aggregator that the authority does not know is told nothing', 'n1', 'other-ca'],
  ['a node whose certificate another authority has made is not heard', 'stranger', 'ca'],
])('%s', async (_, name, ca) => {
  served = await Served.start()
  const { port } = await listen(served.aggregator, SERVER)
  sending = new Sending(asNode(name, port, ca))
  sending.told.tell(update('n1', 1))
  await waitFor(() => (sending?.states.length === 1 ? true : undefined), SOON)
  expect(sending.states).toEqual([expect.stringContaining('does not take this node')])
  expect(served.aggregator.count.updates).toMatchObject({ new: 0 })
})
