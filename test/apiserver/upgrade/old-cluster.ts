// SPDX-License-Identifier: Apache-2.0
/** A cluster with an older version in it, its nodes played, and netplanectl as a person runs it. Layer: test. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { helmPrograms } from '../../../testkit/kubernetes/build/helm.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { TestKubelets } from '../../../testkit/kubernetes/kubelets/test-kubelets.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { Controllers } from '../controllers/controllers.ts'
import { issueToken } from '../rights.ts'
import { run, startOperator, stopProcess, type Ended } from '../run.ts'

const PROGRAM = join(packageRoot(), 'dist/cli/main.js')
const V3_KINDS = ['Tier', 'FelixConfiguration', 'ControllersConfiguration', 'IPPool', 'NetworkPolicy', 'GlobalNetworkPolicy', 'IPAMBlock']

const RBAC = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'reader' } }
const READER: readonly object[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader', namespace: 'default' } },
  { ...RBAC, kind: 'ClusterRole', rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }] },
  {
    ...{ ...RBAC, kind: 'ClusterRoleBinding', roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' } },
    subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace: 'default' }],
  },
]

/** By which one run is at work at a time. */
export const RUN_LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-system', name: 'netplane-upgrade' }

export interface Begun {
  readonly pid: number | undefined
  /** what it has said so far */
  readonly output: () => string
  /** null: it was killed */
  readonly ended: Promise<number | null>
  readonly kill: () => Promise<void>
  /** with all that it has begun, as when its host goes */
  readonly killAll: () => Promise<void>
}

export class OldCluster implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'netplane-upgrade-'))
  readonly client: ApiClient
  readonly kubeconfig: string
  /** a folder with helm */
  readonly programs = join(this.folder, 'bin')
  readonly #stack = new AsyncDisposableStack()
  readonly #kubelets: TestKubelets
  readonly #kubeconfigOf: LoopbackCluster['kubeconfig']

  private constructor(cluster: LoopbackCluster, helm: string) {
    this.kubeconfig = cluster.kubeconfig()
    this.#kubeconfigOf = (user) => cluster.kubeconfig(user)
    mkdirSync(this.programs)
    symlinkSync(helm, join(this.programs, 'helm'))
    this.client = this.#stack.use(new ApiClient({ server: fromKubeconfig(this.kubeconfig) }))
    this.#kubelets = this.#stack.use(new TestKubelets({ client: this.client, startMs: 200 }))
  }

  /** `plant`: makes what is installed. */
  static async start(plant: (cluster: OldCluster) => Promise<void>): Promise<OldCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-upgrade-server-'))
    const cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder, controllers: true })
    const old = new OldCluster(cluster, (await helmPrograms()).v3)
    old.#stack.defer(() => {
      rmSync(folder, { recursive: true })
      rmSync(old.folder, { recursive: true })
    })
    old.#stack.use(cluster)
    await plant(old)
    return old
  }

  async addNodes(names: readonly string[]): Promise<void> {
    await this.#kubelets.add(names)
  }

  /** Those of this version. */
  runControllers(...flags: readonly string[]): void {
    this.#stack.use(new Controllers(this, 'controllers', flags))
  }

  /** That of this version. */
  runOperator(): void {
    const operator = startOperator(this.kubeconfig, join(this.folder, 'operator.log'))
    this.#stack.defer(() => stopProcess(operator))
  }

  /** As lines of JSON. */
  get operatorLog(): string {
    return readFileSync(join(this.folder, 'operator.log'), 'utf8')
  }

  async netplanectl(...args: readonly string[]): Promise<Ended> {
    return await this.#run(this.kubeconfig, args)
  }

  /** By another version's program. */
  async netplanectlOf(program: string, ...args: readonly string[]): Promise<Ended> {
    return await this.#run(this.kubeconfig, args, program)
  }

  /** By an account that may read all kinds, and write none. */
  async netplanectlOfReader(...args: readonly string[]): Promise<Ended> {
    for (const object of READER) await this.client.apply(asApiObject(object), { fieldManager: 'test' })
    const token = await issueToken(this.client, { apiVersion: 'v1', kind: 'ServiceAccount', namespace: 'default', name: 'reader' })
    return await this.#run(this.#kubeconfigOf({ token }), args)
  }

  async #run(kubeconfig: string, args: readonly string[], program = PROGRAM): Promise<Ended> {
    return await run(process.execPath, [program, ...args, '--kubeconfig', kubeconfig], this.#environment())
  }

  /** A run that is killed leaves its temporary files in our folder. */
  #environment(): Readonly<Record<'PATH' | 'TMPDIR', string>> {
    return { PATH: `${this.programs}:${process.env['PATH'] ?? ''}`, TMPDIR: this.folder }
  }

  /** One that goes on while others are run. */
  begin(...args: readonly string[]): Begun {
    const env = { ...process.env, ...this.#environment() }
    const child = spawn(process.execPath, [PROGRAM, ...args, '--kubeconfig', this.kubeconfig], { env, detached: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return {
      pid: child.pid,
      output: () => output,
      ended,
      kill: async () => {
        child.kill('SIGKILL')
        await ended
      },
      killAll: async () => {
        if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
        await ended
      },
    }
  }

  /** Null: it was killed before it ended. Its Lease is free then, as it is some seconds later. */
  async killedAfter(ms: number, ...args: readonly string[]): Promise<number | null> {
    const run = this.begin(...args)
    const timer = setTimeout(() => void run.kill(), ms)
    const code = await run.ended
    clearTimeout(timer)
    if (code === null) await this.client.delete(RUN_LEASE).catch(ifAbsent)
    return code
  }

  /** All that an upgrade writes, without what a server gives. */
  async end(namespace: string): Promise<readonly string[]> {
    const { client } = this
    const v3 = await Promise.all(V3_KINDS.map((kind) => listOrNone(client, { apiVersion: 'netplane.io/v3', kind })))
    const workloads = ['DaemonSet', 'Deployment'].map((kind) => client.list({ apiVersion: 'apps/v1', kind, namespace }))
    const accounts = await client.list({ apiVersion: 'v1', kind: 'ServiceAccount', namespace })
    const policies = await client.list({ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy' })
    return [...v3.flat(), ...(await Promise.all(workloads)).flat(), ...accounts, ...policies].map(withoutGiven).sort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** It may have been killed before it had one. */
function ifAbsent(thrown: unknown): void {
  if (!isRefused(thrown, 'NotFound')) throw thrown
}

/** Times are of each run. */
function withoutGiven({ kind, metadata, spec }: ApiObject): string {
  const { name, namespace, labels } = metadata
  return JSON.stringify({ kind, name, namespace, labels, spec }).replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"time"')
}
