// SPDX-License-Identifier: Apache-2.0
/** Credentials that end earlier than announced, and those that do not come. Layer: test. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { withTimeLimit } from '#lib/api/connection/time-limit.ts'
import { fromKubeconfig, type KubeconfigOptions } from '#lib/api/connection/kubeconfig.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { until } from '../../../testkit/base/until.ts'
import { FakeServer, refuse, service } from './fake-server.ts'
import { SourceRun } from './source-run.ts'

const PODS = { apiVersion: 'v1', kind: 'Pod' }

let folder: string
let fake: FakeServer
/** what the server takes */
let good: string
let said: string[]
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-credentials-'))
  fake = await FakeServer.start()
  good = 'Bearer token-1'
  said = []
  fake.fault = ({ authorization }, response) => {
    if (authorization === good) return false
    refuse(response, 401, 'Unauthorized')
    return true
  }
})
afterEach(async () => {
  await fake[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function write(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

function config(user: object, cluster: object = {}): string {
  return write(
    'config',
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${fake.server.port}`, ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  )
}

/** A program that gives "token-1", then "token-2" …, unless it does what `script` says. */
function program(script = '', status = ''): object {
  const answer = `{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "token-'$n'"${status}}}`
  write(
    'login',
    `#!/bin/sh\nn=$(($(cat ${folder}/runs 2>/dev/null || echo 0) + 1)); echo $n > ${folder}/runs\n${script}\necho '${answer}'\n`,
    0o755,
  )
  return { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './login' } }
}

function runs(): number {
  return existsSync(join(folder, 'runs')) ? Number(readFileSync(join(folder, 'runs'), 'utf8')) : 0
}

function clientOf(server: ApiServer): ApiClient {
  return new ApiClient({ server, onCredentials: (state, reason) => said.push(`${state}: ${reason}`) })
}

function client(file: string, options: KubeconfigOptions = {}): ApiClient {
  return clientOf(fromKubeconfig(file, options))
}

describe('what a program has given is asked for again when the server refuses it', () => {
  test.each([
    ['that never ends', ''],
    ['before it ends', ', "expirationTimestamp": "2099-01-01T00:00:00Z"'],
  ])('%s', async (_, status) => {
    await using api = client(config(program('', status)))
    await api.list(PODS)
    await api.list(PODS)
    expect(runs()).toBe(1)
    good = 'Bearer token-2'
    await api.list(PODS)
    await api.create({ ...PODS, metadata: { name: 'a', namespace: 'b' } }).catch(() => undefined)
    expect(runs()).toBe(2)
    expect(said).toEqual([expect.stringMatching(/^refused: http:\/\/127\.0\.0\.1:\d+ has refused them \(HTTP 401\)$/)])
  })

  test('once for all requests, and less and less often while it goes on', async () => {
    await using api = client(config(program()))
    good = 'nothing'
    const end = Date.now() + 5000
    while (Date.now() < end) {
      await Promise.all(Array.from({ length: 10 }, () => expect(api.list(PODS)).rejects.toThrow('Unauthorized')))
      await sleep(20)
    }
    // at once, after one second, after two more, not yet after another four; and the one that began
    expect(runs()).toBeGreaterThanOrEqual(3)
    expect(runs()).toBeLessThanOrEqual(4)
    expect(said.length).toBe(runs() - 1)
  })

  test('a source goes on with what the program gives then', async () => {
    const server = fromKubeconfig(config(program()))
    await using source = await new SourceRun({ server, watchSeconds: 1 }).untilSynced()
    good = 'Bearer token-2'
    await until('the watch', () => fake.watching('/api/v1/services') === 1)
    fake.quietly(() => {
      fake.put('/api/v1/services', service('late'))
    })
    fake.endWatches('/api/v1/services')
    await source.untilThere('Service/default/late')
    expect(source.unavailable).toBeUndefined()
  })
})

test('what a program has given is asked for again when it ends, and not before', async () => {
  const clock = new FakeClock()
  const at = (ms: number): string => new Date(clock.wall() + ms).toISOString()
  const server = fromKubeconfig(config(program('', `, "expirationTimestamp": "${at(60_000)}"`)), { clock })
  expect(await server.headers()).toEqual({ authorization: 'Bearer token-1' })
  clock.advance(59_000)
  expect(await server.headers()).toEqual({ authorization: 'Bearer token-1' })
  clock.advance(2000)
  expect(await server.headers()).toEqual({ authorization: 'Bearer token-2' })
})

test('what a program has given is used for a second, though it has ended by the clock of this machine', async () => {
  const clock = new FakeClock()
  const server = fromKubeconfig(config(program('', ', "expirationTimestamp": "1970-01-01T00:00:00Z"')), { clock })
  for (let time = 0; time < 10; time++) expect(await server.headers()).toEqual({ authorization: 'Bearer token-1' })
  clock.advance(1000)
  expect(await server.headers()).toEqual({ authorization: 'Bearer token-2' })
})

describe('a program', () => {
  test('that hangs is killed with what it has started, and the error says so', async () => {
    await using api = client(config(program(`sleep 1000 & echo $! > ${folder}/pid; sleep 1000`)), { loginMs: 500 })
    const began = performance.now()
    await expect(api.list(PODS)).rejects.toThrow(/exec \.\/login: no answer within 0\.5 s/)
    expect(performance.now() - began).toBeLessThan(10_000)
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
    await until('it to be gone', () => !existsSync(`/proc/${pid}/stat`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')))
  })

  test('that fails is not run for each request, and the error has what it complains of', async () => {
    await using api = client(config(program('echo no ticket >&2; exit 3')))
    for (let time = 0; time < 20; time++) await expect(api.list(PODS)).rejects.toThrow('exec ./login: exit code 3: no ticket')
    expect(runs()).toBe(1)
  })

  test('is let go of with its client', async () => {
    const api = client(config(program('sleep 1000')))
    const asked = expect(api.list(PODS)).rejects.toThrow('the client is closed')
    await until('it to run', () => runs() === 1)
    await api[Symbol.asyncDispose]()
    await asked
  })

  test('whose output is no ExecCredential does not have it in the error', async () => {
    await using api = client(config(program('echo "secret-token"; exit 0')))
    const refused = await api.list(PODS).catch(String)
    expect(refused).toContain('what it says is no ExecCredential')
    expect(refused).not.toContain('secret')
  })

  test('hears of the cluster when it asks to, has its variables, and gives certificates', async () => {
    write('ca.crt', 'CA')
    const given = '{"kind": "ExecCredential", "status": {"clientCertificateData": "CERT", "clientKeyData": "KEY"}}'
    write('certify', `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > ${folder}/info; echo "$1 $NAME" > ${folder}/args\necho '${given}'\n`, 0o755)
    const exec = {
      ...{ apiVersion: 'client.authentication.k8s.io/v1beta1', command: 'certify', args: ['a'], env: [{ name: 'NAME', value: 'b' }] },
      ...{ provideClusterInfo: true, command: './certify' },
    }
    const server = fromKubeconfig(config({ exec }, { server: 'https://api.example', 'certificate-authority': 'ca.crt' }))
    expect([await server.tls(), await server.headers()]).toEqual([{ ca: 'CA', cert: 'CERT', key: 'KEY' }, {}])
    expect(JSON.parse(readFileSync(join(folder, 'info'), 'utf8'))).toEqual({
      apiVersion: 'client.authentication.k8s.io/v1beta1',
      kind: 'ExecCredential',
      spec: { interactive: false, cluster: { server: 'https://api.example', 'certificate-authority-data': 'Q0E=' } },
    })
    expect(readFileSync(join(folder, 'args'), 'utf8')).toBe('a b\n')
  })

  test.each([
    [{ command: 'x' }, 'exec: apiVersion: undefined is not of client.authentication.k8s.io/'],
    [{ apiVersion: 'client.authentication.k8s.io/v1' }, 'exec: command: is missing'],
    [
      { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Always' },
      'exec: interactiveMode: Always is not taken',
    ],
  ])('%j is refused', (exec, reason) => {
    expect(() => fromKubeconfig(config({ exec }))).toThrow(reason)
  })
})

describe('a kubeconfig that was rewritten', () => {
  test('has another token', async () => {
    await using api = client(config({ token: 'token-1' }))
    await api.list(PODS)
    config({ token: 'token-2' })
    good = 'Bearer token-2'
    await api.list(PODS)
  })

  test('has other certificates, which are shown by another connection', async () => {
    const data = (text: string): object => ({
      ...{ token: 'token-1', 'client-certificate-data': Buffer.from(text).toString('base64') },
      'client-key-data': Buffer.from(`key of ${text}`).toString('base64'),
    })
    const server = fromKubeconfig(config(data('one')))
    await using api = clientOf(server)
    await api.list(PODS)
    const before = api.transport.connected
    config(data('two'))
    let refused = 0
    fake.fault = (_, response) => {
      if (refused > 0) return false
      refused++
      refuse(response, 401, 'Unauthorized')
      return true
    }
    await api.list(PODS)
    expect(api.transport.connected).not.toBe(before)
    expect(await server.tls()).toEqual({ cert: 'two', key: 'key of two' })
  })

  test.each(['gone', 'refusing'])('has another server: the old one is %s', async (how) => {
    const server = fromKubeconfig(config({ token: 'token-1' }))
    await using source = await new SourceRun({ server }).untilSynced()
    await using other = await FakeServer.start()
    for (const name of ['more', 'other']) other.put('/api/v1/services', service(name))
    other.oldest = 101
    config({ token: 'token-1' }, { server: `http://localhost:${other.server.port}` })
    good = 'nothing'
    if (how === 'gone') fake.cut()
    else fake.endWatches('/api/v1/services')
    await source.untilThere('Service/default/other')
    expect(source.source.servers().port).toBe(other.server.port)
  })

  test('a rewritten kubeconfig that makes no sense is not taken, which is reported once', async () => {
    await using api = client(config({ token: 'token-1' }))
    await api.list(PODS)
    write('config', '{"clusters": []}')
    good = 'nothing'
    await expect(api.list(PODS)).rejects.toThrow('Unauthorized')
    good = 'Bearer token-1'
    await api.list(PODS)
    expect(said).toEqual([expect.stringMatching(/^refused/), expect.stringMatching(/^unreadable: kubeconfig: contexts: there is no ""/)])
  })

  test('logs in by a program from now on, and no longer', async () => {
    await using api = client(config({ token: 'token-0' }))
    await expect(api.list(PODS)).rejects.toThrow('Unauthorized')
    config(program())
    await sleep(1100)
    await api.list(PODS)
    config({ token: 'token-3' })
    good = 'Bearer token-3'
    await sleep(2100)
    await api.list(PODS)
    expect(runs()).toBe(1)
  })
})

test('paths in a kubeconfig are relative to its folder, wherever the agent runs', async () => {
  for (const name of ['ca', 'cert', 'key', 'token']) write(name, name.toUpperCase())
  mkdirSync(join(folder, 'bin'))
  const user = { 'client-certificate': 'cert', 'client-key': './key', tokenFile: 'token' }
  const file = relative(process.cwd(), config(user, { 'certificate-authority': 'bin/../ca' }))
  const server = fromKubeconfig(file)
  expect(await server.tls()).toEqual({ ca: 'CA', cert: 'CERT', key: 'KEY' })
  expect(await server.headers()).toEqual({ authorization: 'Bearer TOKEN' })
  program()
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'bin/../login' }
  config({ exec })
  expect(await fromKubeconfig(file).headers()).toEqual({ authorization: 'Bearer token-1' })
  const byName = fromKubeconfig(config({ exec: { ...exec, command: 'no-such-program' } }))
  await expect(byName.headers()).rejects.toThrow('ENOENT')
})

test('a service account\u2019s token that was replaced is sent, and a refusal by the server is reported', async () => {
  write('token', 'token-1')
  write('ca.crt', 'CA')
  const { protocol, host, port } = fake.server
  const account = inCluster({ env: { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: String(port) }, account: folder })
  await using api = clientOf({ ...account, protocol })
  await api.list(PODS)
  good = 'Bearer token-2'
  await expect(api.list(PODS)).rejects.toThrow('Unauthorized')
  write('token', 'token-2')
  await api.list(PODS)
  expect(said).toEqual([expect.stringMatching(/^refused/)])
})

test('credentials that do not come are not waited for without end', async () => {
  const clock = new FakeClock()
  const never = withTimeLimit(clock, new Promise<never>(() => undefined))
  const rejected = expect(never).rejects.toThrow('no credentials within 40 s')
  clock.advance(40_000)
  await rejected
})
