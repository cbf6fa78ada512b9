// SPDX-License-Identifier: Apache-2.0
/** etcd and kube-apiserver in a place of a lab that every node can reach. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Lab } from '../../lab/lab.ts'
import { waitFor } from '../../lab/wait.ts'
import { requestsFor } from './objects.ts'
import type { ApiRequest } from './objects.ts'

const READY_MS = 120_000
const TOKEN = 'lab-only'
const PORT = 6443

export interface ControlPlaneOptions {
  readonly lab: Lab
  /** with the programs of programs.ts */
  readonly programs: string
  /** empty, seen from inside nodes too: certificates, data, logs */
  readonly folder: string
  /** holds every cluster IP of the objects */
  readonly serviceCidrs: readonly string[]
}

/** Lives in the fabric's namespace, at the address that is the nodes' gateway. */
export class ControlPlane implements AsyncDisposable {
  readonly #options: ControlPlaneOptions
  readonly #address: string
  readonly #children: ChildProcess[] = []

  private constructor(options: ControlPlaneOptions) {
    this.#options = options
    this.#address = options.lab.topology.fabric.addresses[0]?.split('/')[0] ?? ''
  }

  /** Resolves when it serves the default namespace. Throws with the end of a log when it ends, or is not ready in time. */
  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    const plane = new ControlPlane(options)
    plane.#writeFiles()
    plane.#spawn('etcd', [
      ...['--data-dir', join(options.folder, 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
      ...['--listen-client-urls', 'http://127.0.0.1:2379', '--advertise-client-urls', 'http://127.0.0.1:2379'],
      ...['--listen-peer-urls', 'http://127.0.0.1:2380'],
    ])
    plane.#spawn('kube-apiserver', plane.#serverFlags())
    try {
      await plane.#ready()
    } catch (thrown) {
      await plane[Symbol.asyncDispose]()
      throw thrown
    }
    return plane
  }

  /** A kubeconfig of an administrator. */
  get kubeconfig(): string {
    return join(this.#options.folder, 'kubeconfig')
  }

  /** Creates the objects (parsed manifests, a List taken apart) in their order. Throws with the server's answer when it refuses one. */
  async create(objects: readonly unknown[]): Promise<void> {
    for (const request of objects.flatMap(requestsFor)) await this.#send(request)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    }
  }

  #writeFiles(): void {
    const { folder } = this.#options
    mkdirSync(folder, { recursive: true })
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
    writeFileSync(join(folder, 'accounts.key'), privateKey.export({ type: 'sec1', format: 'pem' }))
    writeFileSync(join(folder, 'tokens.csv'), `${TOKEN},admin,admin,system:masters\n`)
    writeFileSync(this.kubeconfig, this.#kubeconfigText())
  }

  #kubeconfigText(): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'lab', cluster: { server: this.#url(''), 'certificate-authority': this.#certificate() } }],
      users: [{ name: 'admin', user: { token: TOKEN } }],
      contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'admin' } }],
      'current-context': 'lab',
    })
  }

  #serverFlags(): string[] {
    const { folder, serviceCidrs } = this.#options
    return [
      ...['--etcd-servers=http://127.0.0.1:2379', '--bind-address=0.0.0.0', `--secure-port=${PORT}`],
      ...[`--advertise-address=${this.#address}`, `--cert-dir=${join(folder, 'certificates')}`],
      ...[`--service-cluster-ip-range=${serviceCidrs.join(',')}`, '--authorization-mode=RBAC'],
      ...[`--token-auth-file=${join(folder, 'tokens.csv')}`, '--service-account-issuer=https://kubernetes.default.svc'],
      ...[`--service-account-key-file=${join(folder, 'accounts.pub')}`],
      ...[`--service-account-signing-key-file=${join(folder, 'accounts.key')}`, '--profiling=false'],
      // there is no controller that would make accounts
      '--disable-admission-plugins=ServiceAccount',
    ]
  }

  async #ready(): Promise<void> {
    const ready = await waitFor(
      async () => {
        if (this.#children.some((child) => child.exitCode !== null || child.signalCode !== null)) return 'ended'
        return existsSync(this.#certificate()) && (await this.#isServing()) ? 'ready' : undefined
      },
      { timeoutMs: READY_MS, everyMs: 200 },
    )
    if (ready !== 'ready') throw new Error(`kube-apiserver ${ready ?? 'is not ready in time'}: ${this.#logEnd()}`)
  }

  async #isServing(): Promise<boolean> {
    const outcomes = ['/readyz', '/api/v1/namespaces/default'].map((path) =>
      this.#options.lab.run('fabric', [...this.#curl(), '--fail', this.#url(path)]),
    )
    return (await Promise.all(outcomes)).every(({ status }) => status === 0)
  }

  async #send(request: ApiRequest): Promise<void> {
    const flags = ['--fail-with-body', '-X', request.method, '-H', `Content-Type: ${request.type}`, '--data-binary', '@-']
    const { status, stdout, stderr } = await this.#options.lab.run('fabric', [...this.#curl(), ...flags, this.#url(request.path)], {
      input: request.body,
    })
    if (status !== 0) throw new Error(`${request.method} ${request.path}: ${stderr}${stdout}`)
  }

  #curl(): string[] {
    return ['curl', '-sS', '--max-time', '30', '--cacert', this.#certificate(), '-H', `Authorization: Bearer ${TOKEN}`]
  }

  /** The server makes it, signed by itself, for the address that it advertises. */
  #certificate(): string {
    return join(this.#options.folder, 'certificates/apiserver.crt')
  }

  #url(path: string): string {
    return `https://${this.#address}:${PORT}${path}`
  }

  #spawn(program: string, flags: readonly string[]): void {
    const log = openSync(join(this.#options.folder, `${program}.log`), 'a')
    const child = this.#options.lab.spawn('fabric', [join(this.#options.programs, program), ...flags], ['ignore', log, log])
    closeSync(log)
    this.#children.push(child)
  }

  #logEnd(): string {
    return ['etcd', 'kube-apiserver']
      .map((program) => readFileSync(join(this.#options.folder, `${program}.log`), 'utf8').slice(-1500))
      .join('\n')
  }
}
