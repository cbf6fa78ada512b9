// SPDX-License-Identifier: Apache-2.0
/** The controllers as a process of a test, with the account that deploy/ has. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderControllers } from '#lib/render/controllers-pod.ts'
import { definitions } from '#lib/render/definitions.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { issueToken } from '../rights.ts'
import { stopProcess } from '../run.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

export const SYSTEM = 'netplane-system'
export const V3 = 'netplane.io/v3'
export const CONFIGURATION: Named = { apiVersion: V3, kind: 'ControllersConfiguration', name: 'default' }
export const INFORMATION: Named = { apiVersion: V3, kind: 'ClusterInformation', name: 'default' }
export const LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: SYSTEM, name: CONTROLLERS_NAME }

const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: undefined })
const rendered = renderControllers({ namespace: SYSTEM, image: 'x', computed, endpoint: undefined })
/** Those of the account. */
export const ROLES = rendered.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')

/** A cluster with our definitions, and the controllers' account. */
export class ControllersCluster implements AsyncDisposable {
  readonly folder: string
  readonly cluster: LoopbackCluster
  readonly admin: ApiClient
  /** as the account */
  readonly kubeconfig: string

  private constructor(of: { folder: string; cluster: LoopbackCluster; admin: ApiClient; kubeconfig: string }) {
    this.folder = of.folder
    this.cluster = of.cluster
    this.admin = of.admin
    this.kubeconfig = of.kubeconfig
  }

  static async start(audit = false): Promise<ControllersCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-controllers-'))
    const cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder, audit })
    const admin = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
    await admin.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } }))
    for (const object of [...rendered, ...definitions(felixSchema()).map(asApiObject)]) await admin.create(object)
    for (const kind of [
      'ControllersConfiguration',
      'HostEndpoint',
      'NodeNetwork',
      'IPAMBlock',
      'ClusterInformation',
      'GlobalNetworkPolicy',
    ])
      await soon(`${kind} is served`, async () => {
        await admin.list({ apiVersion: V3, kind })
        return true
      })
    const account = rendered.find(({ kind }) => kind === 'ServiceAccount')
    if (account === undefined) throw new Error('no account')
    return new ControllersCluster({
      folder,
      cluster,
      admin,
      kubeconfig: cluster.kubeconfig({ token: await issueToken(admin, namedOf(account)) }),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin[Symbol.asyncDispose]()
    await this.cluster[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true })
  }
}

/** A process of the program, until it goes out of scope. */
export class Controllers implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #log: string

  constructor(
    { folder, kubeconfig, root = packageRoot() }: Pick<ControllersCluster, 'folder' | 'kubeconfig'> & { readonly root?: string },
    name = 'controllers',
    flags: readonly string[] = [],
  ) {
    this.#log = join(folder, `${name}.log`)
    const log = openSync(this.#log, 'w')
    const program = join(root, 'dist/controllers/main.js')
    const all = [program, '--kubeconfig', kubeconfig, '--health-port', '0', ...flags]
    this.#child = spawn(process.execPath, all, { stdio: ['ignore', log, 'inherit'] })
    closeSync(log)
  }

  /** As lines of JSON. */
  get log(): string {
    return readFileSync(this.#log, 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stopProcess(this.#child)
  }

  async kill(): Promise<void> {
    await stopProcess(this.#child, 'SIGKILL')
  }
}

/** Rejects with what was waited for. */
export async function soon(what: string, isDone: () => Promise<boolean>, timeoutMs = HANG_MS): Promise<void> {
  const look = async (): Promise<true | undefined> => ((await isDone().catch(() => false)) ? true : undefined)
  if ((await waitFor(look, { timeoutMs, everyMs: 50 })) === undefined) throw new Error(`not in time: ${what}`)
}

/** A Node, and what its agent says of it. */
export async function addNode(admin: ApiClient, name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const made = await admin.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } }))
  const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] }
  await admin.patch(namedOf(made), { status }, { type: 'merge', subresource: 'status' })
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid: made.metadata.uid }]
  const spec = { interfaces: [{ name: 'eth0', addresses: ['192.0.2.1', '2001:db8::1'] }] }
  await admin.create(asApiObject({ apiVersion: V3, kind: 'NodeNetwork', metadata: { name, ownerReferences }, spec }))
}

/** Without a garbage collector in the cluster. */
export async function removeNode(admin: ApiClient, name: string): Promise<void> {
  for (const [apiVersion, kind] of [
    [V3, 'NodeNetwork'],
    ['v1', 'Node'],
  ] as const)
    await admin.delete({ apiVersion, kind, name }).catch(() => undefined)
}

export async function configure(admin: ApiClient, node: object, more: object = {}): Promise<void> {
  await admin.patch(CONFIGURATION, { spec: { ...more, controllers: { node } } }, { type: 'merge' })
}

export function hostEndpoint(name: string, node: string, labels: Readonly<Record<string, string>> = {}): ApiObject {
  return asApiObject({ apiVersion: V3, kind: 'HostEndpoint', metadata: { name, labels }, spec: { node, interfaceName: '*' } })
}

export async function endpointNames(admin: ApiClient): Promise<readonly string[]> {
  return (await admin.list({ apiVersion: V3, kind: 'HostEndpoint' })).map(({ metadata }) => metadata.name).sort()
}
