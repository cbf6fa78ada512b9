// SPDX-License-Identifier: Apache-2.0
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { originOf } from '#lib/api/connection/server.ts'
import { Transport } from '#lib/api/connection/transport.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-kubeconfig-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function config(user: object, cluster: object = {}): string {
  return write(
    'config',
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://api.example:6443', ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  )
}

function provider(name: string, config: object): object {
  return { 'auth-provider': { name, config } }
}

describe('a kubeconfig', () => {
  test.each([
    ['https://10.0.0.1', 'https://10.0.0.1:443', ''],
    ['https://[fd00::1]:6443/', 'https://[fd00::1]:6443', ''],
    ['https://rancher.example/k8s/clusters/c-1', 'https://rancher.example:443', '/k8s/clusters/c-1'],
  ])('%s', (server, origin, prefix) => {
    const read = fromKubeconfig(config({}, { server }))
    expect([originOf(read), read.prefix]).toEqual([origin, prefix])
  })

  test.each([
    [{ token: 'abc' }, { authorization: 'Bearer abc' }],
    [{ username: 'a', password: 'b' }, { authorization: 'Basic YTpi' }],
    [{}, {}],
  ])('user %j', async (user, headers) => {
    expect(await fromKubeconfig(config(user)).headers()).toEqual(headers)
  })

  test('a token file is read each time, and beside the config', async () => {
    write('token', 'one\n')
    const { headers } = fromKubeconfig(config({ tokenFile: 'token' }))
    expect(await headers()).toEqual({ authorization: 'Bearer one' })
    write('token', 'two\n')
    expect(await headers()).toEqual({ authorization: 'Bearer two' })
  })

  test('certificates are text or files', async () => {
    write('ca.crt', 'CA')
    const data = (text: string): string => Buffer.from(text).toString('base64')
    const user = { 'client-certificate-data': data('CERT'), 'client-key-data': data('KEY') }
    const { tls, servername } = fromKubeconfig(config(user, { 'certificate-authority': 'ca.crt', 'tls-server-name': 'kubernetes' }))
    expect(await tls()).toEqual({ ca: 'CA', cert: 'CERT', key: 'KEY' })
    expect(servername).toBe('kubernetes')
  })

  test('whose user logs in by a program has its token', async () => {
    const answer = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token: 'from-a-program' } }
    const program = write('login', `#!/bin/sh\necho '${JSON.stringify(answer)}'\n`)
    chmodSync(program, 0o755)
    const server = fromKubeconfig(config({ exec: { apiVersion: answer.apiVersion, command: program } }))
    expect(await server.headers()).toMatchObject({ authorization: 'Bearer from-a-program' })
  })

  test.each([
    [{}, { 'insecure-skip-tls-verify': true }, /insecure-skip-tls-verify: is not taken/],
    [{}, { 'proxy-url': 'http://proxy.example:3128' }, /proxy-url: is not taken/],
    [{}, { server: 'api.example' }, /server: "api.example" is no URL/],
    // kubectl has none of these any more; the library waits for their programs with everything else
    [provider('gcp', { 'cmd-path': '/bin/false' }), {}, /auth-provider: "gcp" is not taken: give "exec"/],
    [provider('azure', { 'access-token': 'abc' }), {}, /auth-provider: "azure" is not taken/],
    [provider('oidc', { exec: { command: '/bin/false' } }), {}, /auth-provider: exec: is not taken/],
  ])('user %j, cluster %j is refused', (user, cluster, reason) => {
    expect(() => fromKubeconfig(config(user, cluster))).toThrow(reason)
  })

  test('whose provider becomes one that is not taken is refused when it is read for the first login', async () => {
    const soon = new Date(Date.now() + 3_600_000).getTime() / 1000
    const token = `e30.${Buffer.from(JSON.stringify({ exp: soon })).toString('base64url')}.e30`
    const oidc = provider('oidc', { 'id-token': token, 'client-id': 'c', 'refresh-token': 'r', 'idp-issuer-url': 'https://127.0.0.1:1' })
    const [read, other] = [fromKubeconfig(config(oidc)), fromKubeconfig(config(oidc))]
    expect(await read.headers()).toEqual({ authorization: `Bearer ${token}` })
    config(provider('azure', { 'cmd-path': '/bin/false' }))
    await expect(other.headers()).rejects.toThrow(/auth-provider: "azure" is not taken/)
  })

  test('that is none is refused by name', () => {
    expect(() => fromKubeconfig(join(folder, 'none'))).toThrow(/none: ENOENT/)
    expect(() => fromKubeconfig(write('text', 'hello'))).toThrow(/is no kubeconfig/)
    expect(() => fromKubeconfig(write('empty', '{}'))).toThrow(/contexts: there is no ""/)
  })
})

describe('in a pod', () => {
  test('the direct address goes before the service', async () => {
    write('token', 'abc')
    write('ca.crt', 'CA')
    const service = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    const direct = { CLUSTER_SERVICE_HOST: 'api.example', CLUSTER_SERVICE_PORT: '6443' }
    const server = inCluster({ env: { ...service, ...direct }, account: folder })
    expect(originOf(server)).toBe('https://api.example:6443')
    expect(originOf(inCluster({ env: service, account: folder }))).toBe('https://[fd00::1]:443')
    expect([await server.tls(), await server.headers()]).toEqual([{ ca: 'CA' }, { authorization: 'Bearer abc' }])
  })

  test('a connection by way of the service says so, and how to avoid it, also where no proxy serves it', async () => {
    write('ca.crt', 'CA')
    const service = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' }
    expect(inCluster({ env: { ...service, CLUSTER_SERVICE_HOST: '127.0.0.1' } }).byService).toBeUndefined()
    const server = inCluster({ env: { ...service, NAMESPACE: 'netplane-system' }, account: folder })
    const missing = 'no CLUSTER_SERVICE_HOST was in config map cluster-services-endpoint of netplane-system'
    expect(server.byService).toContain(missing)
    await using transport = new Transport({ server })
    await expect(transport.connect(AbortSignal.timeout(10_000))).rejects.toThrow(
      new RegExp(`^https://127.0.0.1:1: .*ECONNREFUSED.*; ${missing}`),
    )
  })

  test('is refused elsewhere, and with a port that is none', () => {
    expect(() => inCluster({ env: {} })).toThrow(/^CLUSTER_SERVICE_HOST: is not set/)
    expect(() => inCluster({ env: { CLUSTER_SERVICE_HOST: 'a', CLUSTER_SERVICE_PORT: 'x' } })).toThrow(/^CLUSTER_SERVICE_PORT: "x"/)
  })
})
