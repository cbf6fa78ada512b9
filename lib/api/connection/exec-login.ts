// SPDX-License-Identifier: Apache-2.0
/** Credentials that a program gives: the "exec" of a kubeconfig's user. Layer: lib/api. */
import { spawn, type ChildProcess } from 'node:child_process'
import { isAbsolute, resolve } from 'node:path'
import { backoffMs, type Backoff } from '../../base/backoff.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { ConfigError } from '../../base/errors.ts'
import { isObject } from '../../base/object.ts'
import { UnreachableError } from '../errors.ts'
import type { TlsMaterial } from './server.ts'

export interface Login {
  readonly tls: TlsMaterial
  readonly headers: Readonly<Record<string, string>>
}

export interface ExecLoginOptions {
  /** of the user, as it is written */
  readonly exec: unknown
  /** of the kubeconfig: the command may be relative to it */
  readonly folder: string
  /** what the program gets to know of the cluster, if it asks for that (`provideClusterInfo`) */
  readonly cluster: () => Promise<Readonly<Record<string, unknown>>>
  readonly clock?: Clock | undefined
  /** a program that takes longer is killed, with what it has started */
  readonly limitMs?: number | undefined
}

type Fields = Readonly<Record<string, unknown>>

interface Given {
  readonly login: Login
  /** ms since 1970; undefined: until the server refuses it */
  readonly until: number | undefined
}

const LIMIT_MS = 30_000
/** One that fails is not run for each request. */
const RETRY: Backoff = { firstMs: 1000, maxMs: 60_000 }
const MOST_BYTES = 1 << 20
const GROUP = 'client.authentication.k8s.io/'

export class ExecLogin implements Disposable {
  readonly #options: ExecLoginOptions
  readonly #exec: Fields
  readonly #clock: Clock
  readonly #closed = new AbortController()
  #given: Given | undefined
  #running: Promise<Given> | undefined
  #failures = 0
  #failed: { readonly error: UnreachableError; readonly until: number } | undefined

  /** Throws ConfigError that names the field. */
  constructor(options: ExecLoginOptions) {
    this.#options = options
    this.#exec = checked(options.exec)
    this.#clock = options.clock ?? systemClock
  }

  /** What the program gave, while it is good; else it is run, once for all callers. Rejects with UnreachableError. */
  async get(): Promise<Login> {
    if (this.#given !== undefined && !(this.#clock.wall() >= (this.#given.until ?? Infinity))) return this.#given.login
    if (this.#failed !== undefined && this.#clock.now() < this.#failed.until) throw this.#failed.error
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return (await this.#running).login
  }

  /** The server refuses what it gave. */
  forget(): void {
    this.#given = undefined
  }

  /** Ends the wait of every caller. */
  [Symbol.dispose](): void {
    this.#closed.abort(new UnreachableError('the client is closed'))
  }

  async #run(): Promise<Given> {
    const command = textIn(this.#exec, 'command') ?? ''
    try {
      const { folder, cluster, limitMs = LIMIT_MS } = this.#options
      const spec = { interactive: false, ...(this.#exec['provideClusterInfo'] === true ? { cluster: await cluster() } : {}) }
      const info = JSON.stringify({ apiVersion: this.#exec['apiVersion'], kind: 'ExecCredential', spec })
      const path = command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command
      const child = spawn(path, textsIn(this.#exec, 'args'), {
        env: { ...process.env, ...variablesIn(this.#exec), KUBERNETES_EXEC_INFO: info },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      })
      const output = await outputOf(child, { clock: this.#clock, limitMs, signal: this.#closed.signal })
      const { login, until } = givenBy(output)
      // by this machine's clock it may have ended before it came: not each request runs the program
      this.#given = { login, until: until === undefined ? until : Math.max(until, this.#clock.wall() + RETRY.firstMs) }
      this.#failures = 0
      this.#failed = undefined
      return this.#given
    } catch (thrown) {
      const error = new UnreachableError(`exec ${command}`, thrown)
      this.#failed = { error, until: this.#clock.now() + backoffMs(RETRY, this.#failures++, Math.random()) }
      throw error
    }
  }
}

function checked(exec: unknown): Fields {
  if (!isObject(exec) || textIn(exec, 'command') === undefined) throw new ConfigError('exec: command', 'is missing')
  const version = exec['apiVersion']
  if (typeof version !== 'string' || !version.startsWith(GROUP))
    throw new ConfigError('exec: apiVersion', `${JSON.stringify(version)} is not of ${GROUP}: give ${GROUP}v1`)
  if (exec['interactiveMode'] === 'Always')
    throw new ConfigError('exec: interactiveMode', 'Always is not taken: no person answers the program here')
  return exec
}

interface Bounds {
  readonly clock: Clock
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** Of a program that ends well and in time. */
async function outputOf(child: ChildProcess, { clock, limitMs, signal }: Bounds): Promise<string> {
  const { promise, resolve: done, reject } = Promise.withResolvers<undefined>()
  const [output, errors] = [new Text(child.stdout), new Text(child.stderr)]
  const onAbort = (): void => {
    reject(signal.reason)
  }
  signal.addEventListener('abort', onAbort)
  const cancel = clock.after(limitMs, () => {
    reject(new Error(`no answer within ${limitMs / 1000} s`))
  })
  output.onFull = () => {
    reject(new Error(`more than ${MOST_BYTES} bytes`))
  }
  child.once('error', reject)
  child.once('close', (code, killed) => {
    const why = errors.text.trim().slice(-300)
    if (code === 0) done(undefined)
    else reject(new Error(`${killed ?? `exit code ${code ?? ''}`}${why === '' ? '' : `: ${why}`}`))
  })
  try {
    await promise
    return output.text
  } catch (thrown) {
    endGroup(child)
    throw thrown
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/** Also those that it has started, which may hold its output open. */
function endGroup({ pid, stdout, stderr }: ChildProcess): void {
  stdout?.destroy()
  stderr?.destroy()
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // all have ended
  }
}

/** What a stream says, up to a bound. */
class Text {
  onFull: () => void = () => undefined
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(stream: ChildProcess['stdout']) {
    stream?.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.length
      if (this.#bytes <= MOST_BYTES) this.#chunks.push(chunk)
      else this.onFull()
    })
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString()
  }
}

function givenBy(output: string): Given {
  const { kind, status } = credentialIn(output)
  if (kind !== 'ExecCredential' || !isObject(status)) throw new Error('what it says is no ExecCredential with a status')
  const [token, cert, key] = [textIn(status, 'token'), textIn(status, 'clientCertificateData'), textIn(status, 'clientKeyData')]
  if ((cert === undefined) !== (key === undefined)) throw new Error('it gives a certificate or a key, and not the other')
  if (token === undefined && cert === undefined) throw new Error('it gives neither token nor certificate')
  const until = Date.parse(textIn(status, 'expirationTimestamp') ?? '')
  return {
    login: { tls: cert === undefined ? {} : { cert, key }, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } },
    until: Number.isNaN(until) ? undefined : until,
  }
}

function credentialIn(output: string): Fields {
  try {
    const value: unknown = JSON.parse(output)
    return isObject(value) ? value : {}
  } catch {
    // the error has a part of the text, which may be a token
    return {}
  }
}

function variablesIn(exec: Fields): Record<string, string> {
  const entries: readonly unknown[] = Array.isArray(exec['env']) ? exec['env'] : []
  const pairs = entries.filter(isObject).map(({ name, value }): [string, string] => [String(name), String(value)])
  return Object.fromEntries(pairs)
}

function textsIn(exec: Fields, name: string): readonly string[] {
  const values: readonly unknown[] = Array.isArray(exec[name]) ? exec[name] : []
  return values.map(String)
}

function textIn(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
