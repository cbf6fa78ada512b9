// SPDX-License-Identifier: Apache-2.0
/** etcd and kube-apiserver on loopback, with TLS and RBAC, that can be killed, stopped and brought back.
 * Layer: testkit. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, cpSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { waitFor } from '../../lab/wait.ts'
import { cached, keyOf } from '../base/cache.ts'
import { Authority } from './certificates.ts'
import { GO_ENV } from './flags.ts'

const READY_MS = 120_000
const ETCD = 'http://127.0.0.1:2379'
export const PORT = 6443

export interface LoopbackOptions {
  /** with the programs of ./build/programs.ts */
  readonly programs: string
  /** empty: certificates, data, logs */
  readonly folder: string
  /** Kubernetes' own run as well, and a scheduler */
  readonly controllers?: boolean
  /** after which its controller misses a node; when not given, within a test */
  readonly silenceSeconds?: number
  /** writes `audit.log` into the folder: a line a request, of all that are no program's of the cluster itself */
  readonly audit?: boolean
}

/** Who asked for what, and how it ended. */
const AUDIT = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  rules: [{ level: 'None', users: ['system:apiserver', 'admin'] }, { level: 'Metadata' }],
}

const OWN = [
  ...['default', 'kube-system', 'kube-public', 'kube-node-lease'].map((name) => ({ kind: 'Namespace', name })),
  { kind: 'Service', namespace: 'default', name: 'kubernetes' },
]

/** What a server makes when it starts for the first time, by the folder that it is in. */
const MADE = ['etcd', 'certificates'] as const

type Program = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'

/** Needs a network namespace of its own: its ports are fixed. */
export class LoopbackCluster implements AsyncDisposable {
  /** whose certificates its users may show */
  readonly users: Authority
  readonly #options: LoopbackOptions
  readonly #children = new Map<Program, ChildProcess>()

  private constructor(options: LoopbackOptions, users: Authority) {
    this.#options = options
    this.users = users
  }

  /** Resolves when it serves, and has made what it makes by itself. Throws with the end of a log when it ends, or is
   * not ready in time. */
  static async start(options: LoopbackOptions): Promise<LoopbackCluster> {
    return await LoopbackCluster.#startFrom(await LoopbackCluster.firstStart(options.programs), options)
  }

  /** The folder with what a server makes when it starts for the first time, a third to a half of the work of its start:
   * made once and kept in the cache. Needs a network namespace of its own, as every server does. */
  static async firstStart(programs: string): Promise<string> {
    // another way to start it makes something else, and its certificate lasts for a year
    const made = [readFileSync(import.meta.filename, 'utf8'), new Date().toISOString().slice(0, 'yyyy-mm'.length)]
    return await cached(`first-starts/${basename(programs)}-${keyOf(made)}`, async (half) => {
      const folder = join(half, 'work')
      await using cluster = await LoopbackCluster.#startFrom(undefined, { programs, folder })
      await cluster.kill('kube-apiserver')
      await cluster.kill('etcd')
      for (const name of MADE) renameSync(join(folder, name), join(half, name))
      rmSync(folder, { recursive: true })
    })
  }

  /** `first`: with what a server had made; undefined: with nothing. */
  static async #startFrom(first: string | undefined, options: LoopbackOptions): Promise<LoopbackCluster> {
    mkdirSync(options.folder, { recursive: true })
    // etcd's log is 64 MB, nearly all of it zeros
    if (first !== undefined)
      for (const made of MADE) execFileSync('cp', ['-r', '--sparse=always', join(first, made), join(options.folder, made)])
    const cluster = new LoopbackCluster(options, await Authority.make(options.folder))
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(cluster.#at('accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
    writeFileSync(cluster.#at('accounts.key'), privateKey.export({ type: 'sec1', format: 'pem' }))
    writeFileSync(cluster.#at('tokens.csv'), 'admin-token,admin,admin,system:masters\n')
    // kubectl keeps the kinds of a server by its address, which is the same for each of these
    process.env['KUBECACHEDIR'] = cluster.#at('kubectl')
    cluster.#startEtcd()
    try {
      await cluster.startServer()
      if (options.controllers === true) cluster.#startControllers(options.silenceSeconds ?? 12)
    } catch (thrown) {
      await cluster[Symbol.asyncDispose]()
      throw thrown
    }
    return cluster
  }

  /** As administrator, or as the user of the token. */
  kubeconfig(user: Readonly<Record<string, unknown>> = { token: 'admin-token' }, host = '127.0.0.1'): string {
    // tokens of one issuer begin alike
    const path = this.#at(
      `kubeconfig-${createHash('sha256')
        .update(JSON.stringify([user, host]))
        .digest('hex')
        .slice(0, 16)}`,
    )
    const cluster = { server: `https://${host}:${PORT}`, 'certificate-authority': this.authority }
    const config = {
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }
    writeFileSync(path, JSON.stringify(config))
    return path
  }

  get authority(): string {
    return this.#at('certificates/apiserver.crt')
  }

  /** Undefined when it has ended. */
  pid(program: Program): number | undefined {
    const child = this.#children.get(program)
    return child?.exitCode === null && child.signalCode === null ? child.pid : undefined
  }

  /** A copy of what etcd has, made while no client writes. Returns how to begin again from it. */
  async backUp(): Promise<() => Promise<void>> {
    await this.#withoutEtcd(() => {
      cpSync(this.#at('etcd'), this.#at('backup'), { recursive: true })
    })
    return async () => {
      await this.#withoutEtcd(() => {
        rmSync(this.#at('etcd'), { recursive: true })
        cpSync(this.#at('backup'), this.#at('etcd'), { recursive: true })
      })
    }
  }

  async #withoutEtcd(change: () => void): Promise<void> {
    await this.kill('kube-apiserver')
    await this.kill('etcd')
    change()
    this.#startEtcd()
    await this.startServer()
  }

  #startEtcd(): void {
    this.#spawn('etcd', [
      ...['--data-dir', this.#at('etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
      ...['--listen-client-urls', ETCD, '--advertise-client-urls', ETCD, '--listen-peer-urls', 'http://127.0.0.1:2380'],
    ])
  }

  #startControllers(silenceSeconds: number): void {
    const common = [`--kubeconfig=${this.kubeconfig()}`, '--leader-elect=false', '--bind-address=127.0.0.1']
    this.#spawn('kube-controller-manager', [
      ...common,
      `--service-account-private-key-file=${this.#at('accounts.key')}`,
      ...['--node-monitor-period=500ms', `--node-monitor-grace-period=${silenceSeconds}s`],
    ])
    this.#spawn('kube-scheduler', common)
  }

  /** With the data that etcd has. */
  async startServer(): Promise<void> {
    this.#spawn('kube-apiserver', [
      ...[`--etcd-servers=${ETCD}`, '--bind-address=127.0.0.1', `--secure-port=${PORT}`, `--cert-dir=${this.#at('certificates')}`],
      ...['--advertise-address=10.96.0.250', '--endpoint-reconciler-type=none', '--service-cluster-ip-range=10.96.0.0/16'],
      ...[
        '--authorization-mode=RBAC',
        '--allow-privileged',
        `--client-ca-file=${this.users.certificate}`,
        `--token-auth-file=${this.#at('tokens.csv')}`,
        '--profiling=false',
      ],
      ...['--service-account-issuer=https://kubernetes.default.svc', `--service-account-key-file=${this.#at('accounts.pub')}`],
      ...[`--service-account-signing-key-file=${this.#at('accounts.key')}`, '--service-account-extend-token-expiration=false'],
      // there is no controller that would make accounts
      '--disable-admission-plugins=ServiceAccount',
      // some distributions have it
      '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
      ...(this.#options.audit === true ? this.#auditFlags() : []),
    ])
    const ready = await waitFor(async () => (this.#hasEnded() ? 'ended' : (await this.#isServing()) ? 'ready' : undefined), {
      timeoutMs: READY_MS,
      everyMs: 100,
    })
    if (ready !== 'ready') throw new Error(`kube-apiserver ${ready ?? 'is not ready in time'}: ${this.#logEnd()}`)
  }

  #auditFlags(): string[] {
    writeFileSync(this.#at('audit.json'), JSON.stringify(AUDIT))
    return [`--audit-policy-file=${this.#at('audit.json')}`, `--audit-log-path=${this.#at('audit.log')}`]
  }

  /** SIGSTOP: it takes connections and says nothing. */
  signal(program: Program, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#children.get(program)?.kill(signal)
  }

  async kill(program: Program): Promise<void> {
    const child = this.#children.get(program)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of ['kube-scheduler', 'kube-controller-manager', 'kube-apiserver', 'etcd'] as const) await this.kill(program)
  }

  #hasEnded(): boolean {
    return [...this.#children.values()].some((child) => child.exitCode !== null || child.signalCode !== null)
  }

  async #isServing(): Promise<boolean> {
    if (!existsSync(this.authority)) return false
    await using client = new ApiClient({ server: fromKubeconfig(this.kubeconfig()) })
    try {
      for (const made of OWN) await client.get({ apiVersion: 'v1', ...made }, { timeoutMs: 2000 })
      const { status, body } = await client.transport.request({ method: 'GET', path: '/readyz', signal: AbortSignal.timeout(2000) })
      body.resume()
      return status === 200
    } catch {
      return false
    }
  }

  #spawn(program: Program, flags: readonly string[]): void {
    const log = openSync(this.#at(`${program}.log`), 'a')
    const env = { ...process.env, ...GO_ENV }
    this.#children.set(program, spawn(join(this.#options.programs, program), flags, { stdio: ['ignore', log, log], env }))
    closeSync(log)
  }

  #at(name: string): string {
    return join(this.#options.folder, name)
  }

  #logEnd(): string {
    return ['etcd', 'kube-apiserver'].map((program) => readFileSync(this.#at(`${program}.log`), 'utf8').slice(-1500)).join('\n')
  }
}
