// SPDX-License-Identifier: Apache-2.0
/** An operator before an API server of its own, and what it says. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { found } from '../objects.ts'
import { startOperator, stopProcess } from '../run.ts'

export const BUILD_MS = 30 * 60_000
export const OPERATOR = 'netplane-operator'
export const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
export const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }

export class OperatorCluster implements AsyncDisposable {
  readonly folder: string
  readonly cluster: LoopbackCluster
  readonly client: ApiClient
  #operator: ChildProcess | undefined

  private constructor(folder: string, cluster: LoopbackCluster) {
    this.folder = folder
    this.cluster = cluster
    this.client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  }

  /** Without an operator yet. */
  static async start(): Promise<OperatorCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-operator-'))
    return new OperatorCluster(folder, await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder }))
  }

  /** Of the operator that was started last. */
  get log(): string {
    return join(this.folder, 'operator.log')
  }

  startOperator(kubeconfig: string = this.cluster.kubeconfig(), ...more: readonly string[]): void {
    this.#operator = startOperator(kubeconfig, this.log, ...more)
  }

  async stopOperator(signal?: NodeJS.Signals): Promise<void> {
    await stopProcess(this.#operator, signal)
  }

  async found(named: Named): Promise<ApiObject | undefined> {
    return await found(this.client, named)
  }

  /** Of a component. */
  async conditions(component: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const object = await this.found({ ...INSTALLATION, kind: 'NetplaneStatus', name: component })
    return objectsIn(fieldsOf(object?.['status'])['conditions'])
  }

  /** "True Blocked message"; empty: there is none of this type. */
  async condition(component: string, type: string): Promise<string> {
    return conditionText(await this.conditions(component), type)
  }

  /** The same of the Installation. */
  async installationCondition(type: string): Promise<string> {
    return conditionText(objectsIn(fieldsOf((await this.found(INSTALLATION))?.['status'])['conditions']), type)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopOperator()
    await this.client[Symbol.asyncDispose]()
    await this.cluster[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true })
  }
}

function conditionText(conditions: readonly Readonly<Record<string, unknown>>[], type: string): string {
  const one = conditions.find((entry) => entry['type'] === type)
  return one === undefined ? '' : [one['status'], one['reason'], one['message']].map(textOf).join(' ')
}
