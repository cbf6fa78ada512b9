// SPDX-License-Identifier: Apache-2.0
/** A kubeconfig file → the API server of one of its contexts. Layer: lib/api. */
import { readFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { load } from 'js-yaml'
import type { Clock } from '../../base/clock.ts'
import { ConfigError, errorText } from '../../base/errors.ts'
import { isObject } from '../../base/object.ts'
import { deepEqual } from '../../base/deep-equal.ts'
import { ExecLogin, type Login } from './exec-login.ts'
import { changingServer, type ApiServer } from './server.ts'

type Fields = Readonly<Record<string, unknown>>

export interface KubeconfigOptions {
  readonly clock?: Clock
  /** the current one when it is not given */
  readonly context?: string | undefined
  /** how long a program may take that gives credentials */
  readonly loginMs?: number
}

/** Of one reading of the file. */
interface Reading extends Pick<ApiServer, 'protocol' | 'host' | 'port' | 'prefix' | 'servername' | 'tls' | 'headers'> {
  readonly login: LoginSource | undefined
}

/** Where credentials come from that a program or a provider gives. */
interface LoginSource extends Disposable {
  /** what it was made of */
  readonly of: unknown
  get(): Promise<Login>
  /** what it gave is no longer good */
  forget(): void
}

/** The file is read again when it may be another one: before each connection, and after a refusal. Throws
 * ConfigError that names the field. */
export function fromKubeconfig(file: string, options: KubeconfigOptions = {}): ApiServer {
  let now = readingOf(file, options)
  const renew = async (refused: boolean): Promise<void> => {
    if (refused) now.login?.forget()
    // what comes from a pipe comes once
    if (!(await stat(file)).isFile()) return
    const { login } = now
    now = readingOf(file, options, login)
    if (now.login !== login) login?.[Symbol.dispose]()
  }
  return Object.assign(
    changingServer(() => now, renew),
    { [Symbol.dispose]: () => now.login?.[Symbol.dispose]() },
  )
}

/** Tokens, certificates and their files are read here. `login`: of the reading before. */
function readingOf(file: string, options: KubeconfigOptions, before?: LoginSource): Reading {
  const config = readConfig(file)
  const context = part(config, 'context', options.context ?? textIn(config, 'current-context') ?? '')
  const cluster = part(config, 'cluster', textIn(context, 'cluster') ?? '')
  const user = part(config, 'user', textIn(context, 'user') ?? '')
  if (cluster['insecure-skip-tls-verify'] === true)
    throw new ConfigError(`${file}: insecure-skip-tls-verify`, 'is not taken: give certificate-authority')
  if (textIn(cluster, 'proxy-url') !== undefined)
    throw new ConfigError(`${file}: proxy-url`, 'is not taken: the API server is asked directly')
  const folder = dirname(resolve(file))
  const material = (from: Fields, name: string) => materialOf(from, { name, folder })
  const [ca, cert, key] = [material(cluster, 'certificate-authority'), material(user, 'client-certificate'), material(user, 'client-key')]
  const login = loginOf({ file, folder, user, cluster, ca, before, ...options })
  return {
    ...placeOf(file, textIn(cluster, 'server') ?? ''),
    servername: textIn(cluster, 'tls-server-name'),
    tls: async () => ({ ca: await ca(), cert: await cert(), key: await key(), ...(await login?.get())?.tls }),
    headers: async () => (await login?.get())?.headers ?? (await headersOf(user, folder)),
    login,
  }
}

interface LoginQuery extends KubeconfigOptions {
  readonly file: string
  readonly folder: string
  readonly user: Fields
  readonly cluster: Fields
  readonly ca: () => Promise<string | undefined>
  readonly before: LoginSource | undefined
}

function loginOf({ file, folder, user, cluster, ca, before, clock, context, loginMs }: LoginQuery): LoginSource | undefined {
  const { exec, 'auth-provider': provider } = user
  if (exec === undefined && provider === undefined) return undefined
  const of = { exec, provider, cluster: isObject(exec) && exec['provideClusterInfo'] === true ? cluster : undefined }
  if (before !== undefined && deepEqual(before.of, of)) return before
  if (exec === undefined) checkProvider(file, provider)
  if (exec === undefined) return { of, ...lateLogin(file, context), [Symbol.dispose]: () => undefined }
  const login = new ExecLogin({ exec, folder, cluster: () => clusterInfo(cluster, ca), clock, limitMs: loginMs })
  return {
    of,
    get: () => login.get(),
    forget: () => {
      login.forget()
    },
    [Symbol.dispose]: () => {
      login[Symbol.dispose]()
    },
  }
}

/** The cluster as a program gets it that asks for it (`provideClusterInfo`). */
async function clusterInfo(cluster: Fields, ca: () => Promise<string | undefined>): Promise<Fields> {
  const [authority, extensions] = [await ca(), cluster['extensions']]
  const ours: unknown = Array.isArray(extensions) ? extensions.find((one) => isObject(one) && one['name'] === EXEC_EXTENSION) : undefined
  return {
    server: cluster['server'],
    'tls-server-name': cluster['tls-server-name'],
    'certificate-authority-data': authority && Buffer.from(authority).toString('base64'),
    config: isObject(ours) ? ours['extension'] : undefined,
  }
}

const EXEC_EXTENSION = 'client.authentication.k8s.io/exec'

function placeOf(file: string, server: string): Pick<ApiServer, 'protocol' | 'host' | 'port' | 'prefix'> {
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new ConfigError(`${file}: server`, `${JSON.stringify(server)} is no URL of an API server`)
  return {
    protocol: url.protocol,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
    prefix: url.pathname.replace(/\/+$/, ''),
  }
}

/** The text itself, or of a file that is read each time. */
function materialOf(from: Fields, { name, folder }: { readonly name: string; readonly folder: string }): () => Promise<string | undefined> {
  const data = textIn(from, `${name}-data`)
  if (data !== undefined) return () => Promise.resolve(Buffer.from(data, 'base64').toString())
  const path = textIn(from, name)
  return path === undefined ? () => Promise.resolve(undefined) : () => readFile(resolve(folder, path), 'utf8')
}

async function headersOf(user: Fields, folder: string): Promise<Readonly<Record<string, string>>> {
  const file = textIn(user, 'tokenFile')
  const token = file === undefined ? textIn(user, 'token') : (await readFile(resolve(folder, file), 'utf8')).trim()
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  const [name, password] = [textIn(user, 'username'), textIn(user, 'password')]
  return name === undefined ? {} : { authorization: `Basic ${Buffer.from(`${name}:${password ?? ''}`).toString('base64')}` }
}

/** The library runs those of clouds itself, without a limit of time while everything else waits, and again for each
 * request. kubectl has not had them since 1.26. Throws ConfigError. */
function checkProvider(file: string, provider: unknown): void {
  const [name, config] = isObject(provider) ? [provider['name'], provider['config']] : []
  if (name !== 'oidc')
    throw new ConfigError(`${file}: auth-provider`, `${JSON.stringify(name)} is not taken: give "exec" with the program that logs in`)
  // for the library such a one is a program as well
  if (isObject(config) && config['exec'] !== undefined)
    throw new ConfigError(`${file}: auth-provider: exec`, 'is not taken: give it as "exec" of the user')
}

/** By the library of the Kubernetes project, which takes a second and 60 MB to load. It remembers what is still
 * good. */
function lateLogin(file: string, context: string | undefined): Pick<LoginSource, 'get' | 'forget'> {
  let loading: Promise<(options: LoginOptions) => Promise<void>> | undefined
  const load = async () => {
    const { KubeConfig } = await import('@kubernetes/client-node')
    const config = new KubeConfig()
    config.loadFromFile(file)
    if (context !== undefined) config.setCurrentContext(context)
    // it may be another file by now
    checkProvider(file, config.getCurrentUser()?.authProvider)
    return (options: LoginOptions) => config.applyToHTTPSOptions(options)
  }
  const get = async (): Promise<Login> => {
    loading ??= load().catch((thrown: unknown) => {
      loading = undefined
      throw thrown
    })
    const options: LoginOptions = {}
    await (
      await loading
    )(options)
    const { cert, key, headers } = options
    return {
      tls: { ...(cert === undefined ? {} : { cert: String(cert) }), ...(key === undefined ? {} : { key: String(key) }) },
      headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
    }
  }
  return {
    get,
    forget: () => {
      loading = undefined
    },
  }
}

interface LoginOptions {
  cert?: string | Buffer
  key?: string | Buffer
  headers?: Record<string, string>
}

function readConfig(file: string): Fields {
  try {
    const config = load(readFileSync(file, 'utf8'))
    if (isObject(config)) return config
  } catch (thrown) {
    throw new ConfigError(file, errorText(thrown), thrown)
  }
  throw new ConfigError(file, 'is no kubeconfig')
}

/** The entry of this name in "clusters", "users", "contexts". */
function part(config: Fields, what: 'cluster' | 'user' | 'context', name: string): Fields {
  const entries = config[`${what}s`]
  const found: unknown = Array.isArray(entries) ? entries.find((entry) => isObject(entry) && entry['name'] === name) : undefined
  const fields = isObject(found) ? found[what] : undefined
  if (isObject(fields)) return fields
  if (what === 'user') return {}
  throw new ConfigError(`kubeconfig: ${what}s`, `there is no ${JSON.stringify(name)}`)
}

function textIn(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
