// SPDX-License-Identifier: Apache-2.0
/** A kubeconfig file → the API server of its current context. Layer: lib/api. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { load } from 'js-yaml'
import { ConfigError, errorText } from '../base/errors.ts'
import { isObject } from '../base/object.ts'
import type { ApiServer, TlsMaterial } from './server.ts'

type Fields = Readonly<Record<string, unknown>>

/** Tokens, certificates and their files are read here; whoever logs in by a program or a provider takes the late way of `login`.
 * Throws ConfigError that names the field. */
export function fromKubeconfig(file: string): ApiServer {
  const config = readConfig(file)
  const context = part(config, 'context', textIn(config, 'current-context') ?? '')
  const cluster = part(config, 'cluster', textIn(context, 'cluster') ?? '')
  const user = part(config, 'user', textIn(context, 'user') ?? '')
  if (cluster['insecure-skip-tls-verify'] === true)
    throw new ConfigError(`${file}: insecure-skip-tls-verify`, 'is not taken: give certificate-authority')
  if (textIn(cluster, 'proxy-url') !== undefined)
    throw new ConfigError(`${file}: proxy-url`, 'is not taken: the API server is asked directly')
  const material = (from: Fields, name: string) => materialOf(from, { name, folder: dirname(file) })
  const [ca, cert, key] = [material(cluster, 'certificate-authority'), material(user, 'client-certificate'), material(user, 'client-key')]
  const login = user['exec'] !== undefined || user['auth-provider'] !== undefined ? lateLogin(file) : undefined
  return {
    ...placeOf(file, textIn(cluster, 'server') ?? ''),
    servername: textIn(cluster, 'tls-server-name'),
    tls: async () => ({ ca: await ca(), cert: await cert(), key: await key(), ...(await login?.())?.tls }),
    headers: async () => (await login?.())?.headers ?? (await headersOf(user, dirname(file))),
  }
}

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

interface Login {
  readonly tls: TlsMaterial
  readonly headers: Readonly<Record<string, string>>
}

/** By the library of the Kubernetes project, which takes a second and 60 MB to load. It remembers what is still good. */
function lateLogin(file: string): () => Promise<Login> {
  let loading: Promise<(options: LoginOptions) => Promise<void>> | undefined
  const load = async () => {
    const { KubeConfig } = await import('@kubernetes/client-node')
    const config = new KubeConfig()
    config.loadFromFile(file)
    return (options: LoginOptions) => config.applyToHTTPSOptions(options)
  }
  return async () => {
    loading ??= load()
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
