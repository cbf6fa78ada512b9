// SPDX-License-Identifier: Apache-2.0
/** The source against a real etcd and kube-apiserver, with TLS and RBAC. Layer: test. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { Authority } from '../../testkit/kubernetes/certificates.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { SourceRun, type SourceRunOptions } from '../lib/api/source-run.ts'
import { until } from '../../testkit/base/until.ts'
import { allowToWatch, tokenFor } from './accounts.ts'
import { compact } from './etcd.ts'
import { define } from './definitions.ts'
import { LoopbackCluster, PORT } from '../../testkit/kubernetes/loopback-cluster.ts'
import { Relay } from './relay.ts'

const WAIT_MS = 30_000
/** quick to find out that no server is there */
const QUICK = { pingMs: 200, silentMs: 800 }

let folder: string
let cluster: LoopbackCluster
let admin: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-api-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  admin = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(admin, 'NodeNetwork')
  await put('first')
  await using source = run()
  // the server makes it, some time after its start
  await source.untilThere('Service/default/kubernetes', WAIT_MS)
})

afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function put(name: string, port = 80): Promise<void> {
  const spec = { ports: [{ port, protocol: 'TCP' }] }
  await admin.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'default', name }, spec })
}

async function drop(name: string): Promise<void> {
  await admin.delete({ apiVersion: 'v1', kind: 'Service', namespace: 'default', name })
}

function run(options: Partial<SourceRunOptions> = {}): SourceRun {
  return new SourceRun({ server: fromKubeconfig(cluster.kubeconfig()), ...options })
}

/** By other addresses; its certificate is for 127.0.0.1. */
function serverAt(host: string): ApiServer {
  return { ...fromKubeconfig(cluster.kubeconfig()), host, servername: '127.0.0.1' }
}

function portOf(source: SourceRun, name: string): number | undefined {
  const event = source.objects.get(`Service/default/${name}`)
  return event?.object.kind === 'Service' ? event.object.ports[0]?.port : undefined
}

test('a source lists and watches, on one connection', async () => {
  await using source = await run().untilSynced()
  expect(source.objects.has('Service/default/first')).toBe(true)
  expect(source.objects.has('Namespace/kube-system')).toBe(true)
  expect(source.status).toEqual({ unavailable: undefined, problems: [] })
  await put('second')
  await source.untilThere('Service/default/second')
  await put('second', 81)
  await until('the change', () => portOf(source, 'second') === 81)
  await drop('second')
  await source.untilGone('Service/default/second')
})

test('a server that another authority vouches for is not spoken to', async () => {
  const other = { ca: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' }
  for (const server of [
    { ...fromKubeconfig(cluster.kubeconfig()), tls: () => Promise.resolve({}) },
    { ...fromKubeconfig(cluster.kubeconfig()), tls: () => Promise.resolve(other) },
    { ...fromKubeconfig(cluster.kubeconfig()), servername: 'other.example' },
  ]) {
    await using source = run({ server })
    await until('the reason', () => source.unavailable !== undefined)
    expect(source.unavailable).toMatch(/^127\.0\.0\.1 port 6443: .*(self-signed|certificate|altnames|PEM|asn1)/i)
    expect(source.synced).toBe(0)
  }
})

test('a source says what it may not see, and waits for it', async () => {
  const account = await admin.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'kube-system', name: 'watcher' } })
  const token = tokenFor(account, join(folder, 'accounts.key'), 600)
  await using source = run({ server: fromKubeconfig(cluster.kubeconfig({ token })) })
  await until('the reason', () => source.unavailable !== undefined)
  expect(source.unavailable).toMatch(/is forbidden: User "system:serviceaccount:kube-system:watcher" cannot list resource/)
  expect(source.synced).toBe(0)
  await allowToWatch(admin, account)
  await source.untilSynced()
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
})

test('a token is read again before it is too old; the source reports one that is too old', async () => {
  const account = await admin.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'kube-system', name: 'rotated' } })
  await allowToWatch(admin, account)
  const tokenFile = join(folder, 'token')
  const write = (seconds: number): void => writeFileSync(tokenFile, `${tokenFor(account, join(folder, 'accounts.key'), seconds)}\n`)
  write(2)
  await using source = await run({ server: fromKubeconfig(cluster.kubeconfig({ tokenFile })), watchSeconds: 1 }).untilSynced()
  // the server remembers for ten seconds that it was good
  await until('the refusal', () => /Unauthorized.*: its last good state stays in force$/.test(source.unavailable ?? ''), WAIT_MS)
  expect(source.objects.has('Service/default/first')).toBe(true)
  source.takeEvents()
  write(600)
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
  await put('with-new-token')
  await source.untilThere('Service/default/with-new-token')
  expect(source.takeEvents()).toEqual(['upsert Service/default/with-new-token'])
})

test('a program that gives tokens without an end is asked again when the server no longer takes one', async () => {
  const account = await admin.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { namespace: 'kube-system', name: 'logged-in' },
  })
  await allowToWatch(admin, account)
  const [token, program] = [join(folder, 'given-token'), join(folder, 'login')]
  const give = (seconds: number): void => writeFileSync(token, tokenFor(account, join(folder, 'accounts.key'), seconds))
  const answer = '{"kind": "ExecCredential", "status": {"token": "\'$(cat given-token)\'"}}'
  writeFileSync(program, `#!/bin/sh\ncd ${folder}; echo x >> runs; echo '${answer}'\n`, { mode: 0o755 })
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './login' }
  give(2)
  await using source = await run({ server: fromKubeconfig(cluster.kubeconfig({ exec })), watchSeconds: 1 }).untilSynced()
  await until('the refusal', () => source.unavailable !== undefined, WAIT_MS)
  give(600)
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
  await put('by-another-token')
  await source.untilThere('Service/default/by-another-token', WAIT_MS)
  // one of each refusal, less and less often
  expect(readFileSync(join(folder, 'runs'), 'utf8').length / 2).toBeLessThan(12)
})

test('a certificate is read again when the server does not take the one before, on a connection that lives', async () => {
  const strangers = join(folder, 'strangers')
  mkdirSync(strangers)
  const [certificate, key] = [join(folder, 'user.crt'), join(folder, 'user.key')]
  const show = async (authority: Authority): Promise<void> => {
    const issued = await authority.issue('watcher', '/O=system:masters/CN=watcher', [])
    copyFileSync(issued.certificate, certificate)
    copyFileSync(issued.key, key)
  }
  await show(await Authority.make(strangers))
  const user = { 'client-certificate': certificate, 'client-key': key }
  await using source = run({ server: fromKubeconfig(cluster.kubeconfig(user)) })
  const isSaid = (): boolean => source.unavailable?.includes('Unauthorized') === true
  await until('the refusal', isSaid, WAIT_MS)
  // the server ends connections of clients that it refuses, which is not the reason
  for (const end = Date.now() + 1000; Date.now() < end; await setTimeout(5)) expect(source.unavailable).toContain('Unauthorized')
  await show(cluster.users)
  await source.untilSynced()
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
})

test('a server that was killed and is back: all objects stay, and only changes are passed on', async () => {
  await using source = await run().untilSynced()
  source.takeEvents()
  const before = Date.now()
  await cluster.kill('kube-apiserver')
  await until('the reason', () => source.unavailable !== undefined, WAIT_MS)
  expect(source.unavailable).toMatch(/^127\.0\.0\.1 port 6443: .*: its last good state stays in force$/)
  expect(source.status?.unavailable?.since).toBeGreaterThanOrEqual(before)
  expect(source.takeEvents()).toEqual([])
  await cluster.startServer()
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
  await put('after-the-kill')
  await source.untilThere('Service/default/after-the-kill', WAIT_MS)
  expect(source.takeEvents()).toEqual(['upsert Service/default/after-the-kill'])
})

test('a source away for so long that the server has forgotten lists again and passes on the difference', async () => {
  await put('goes')
  await put('changes')
  await put('stays')
  const relay = await Relay.start('127.0.0.3', PORT, '127.0.0.1')
  await using source = await run({ server: serverAt('127.0.0.3') }).untilSynced()
  source.takeEvents()
  await relay[Symbol.asyncDispose]()
  await until('the reason', () => source.unavailable !== undefined, WAIT_MS)
  await drop('goes')
  await put('changes', 81)
  await cluster.kill('kube-apiserver')
  await compact()
  await cluster.startServer()
  await using again = await Relay.start('127.0.0.3', PORT, '127.0.0.1')
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
  await source.untilGone('Service/default/goes', WAIT_MS)
  expect(again.connections).toBeGreaterThan(0)
  expect(source.takeEvents()).toEqual(['upsert Service/default/changes', 'delete Service/default/goes'])
  expect(source.source.facts().get('Service')?.lists).toBe(2)
})

test('a server restored from a backup: what was made since is gone, and what was deleted since is back', async () => {
  await put('deleted-since')
  const restore = await cluster.backUp()
  await using source = await run().untilSynced()
  await drop('deleted-since')
  for (let time = 0; time < 30; time++) await put('made-since', 1000 + time)
  await put('first', 81)
  await source.untilThere('Service/default/made-since')
  await source.untilGone('Service/default/deleted-since', WAIT_MS)
  await restore()
  await source.untilThere('Service/default/deleted-since', WAIT_MS)
  await source.untilGone('Service/default/made-since', WAIT_MS)
  expect(source.objects.get('Service/default/first')).toMatchObject({ object: { ports: [{ port: 80 }] } })
  await put('after-it')
  await source.untilThere('Service/default/after-it', WAIT_MS)
})

test('a server stopped with its connections open is found out by its silence', async () => {
  await using source = await run(QUICK).untilSynced()
  source.takeEvents()
  cluster.signal('kube-apiserver', 'SIGSTOP')
  try {
    await until('the reason', () => source.unavailable !== undefined, WAIT_MS)
    expect(source.unavailable).toMatch(/no answer in 5000 ms: its last good state stays in force$/)
  } finally {
    cluster.signal('kube-apiserver', 'SIGCONT')
  }
  await until('the end of it', () => source.unavailable === undefined, WAIT_MS)
  await put('after-the-stop')
  await source.untilThere('Service/default/after-the-stop', WAIT_MS)
  expect(source.takeEvents()).toEqual(['upsert Service/default/after-the-stop'])
})

test('of several addresses, the ones that are dead or silent are passed over, and the name is looked up again', async () => {
  await using stack = new AsyncDisposableStack()
  stack.use(await Relay.start('127.0.0.8', PORT))
  const relay = await Relay.start('127.0.0.3', PORT, '127.0.0.1')
  let answers = ['127.0.0.8', '127.0.0.9', '127.0.0.3']
  const resolve = (): Promise<string[]> => Promise.resolve(answers)
  await using source = await run({ ...QUICK, server: serverAt('api.example'), resolve }).untilSynced()
  expect(source.source.servers().addresses).toHaveLength(3)
  expect(relay.connections).toBeGreaterThan(0)
  source.takeEvents()
  answers = ['127.0.0.8', '127.0.0.9', '127.0.0.1']
  await relay[Symbol.asyncDispose]()
  await put('by-another-way')
  await source.untilThere('Service/default/by-another-way', WAIT_MS)
  expect(source.takeEvents()).toEqual(['upsert Service/default/by-another-way'])
})
