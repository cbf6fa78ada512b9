// SPDX-License-Identifier: Apache-2.0
/** A cluster that `netplanectl install` is run against, as a program. Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'

export const BUILD_MS = 30 * 60_000
export const NAMESPACE = 'netplane-operator'
export const DEPLOYMENT: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: NAMESPACE, name: 'netplane-operator' }

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export class InstallCluster implements AsyncDisposable {
  readonly folder: string
  /** where kubectl is */
  readonly programs: string
  readonly cluster: LoopbackCluster
  readonly client: ApiClient

  private constructor({ folder, programs, cluster }: Pick<InstallCluster, 'folder' | 'programs' | 'cluster'>) {
    this.folder = folder
    this.programs = programs
    this.cluster = cluster
    this.client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  }

  static async start(): Promise<InstallCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-install-'))
    const programs = await kubernetesPrograms()
    return new InstallCluster({ folder, programs, cluster: await LoopbackCluster.start({ programs, folder }) })
  }

  /** As a person runs it, with the administrator's kubeconfig. */
  async netplanectl(...args: readonly string[]): Promise<Ended> {
    const child = spawn(process.execPath, [join(packageRoot(), 'dist/cli/main.js'), ...args], {
      env: { ...process.env, KUBECONFIG: this.cluster.kubeconfig() },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const closed = once(child, 'close')
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    await closed
    return { code: child.exitCode, out, err }
  }

  kubectl(...args: readonly string[]): string {
    return execFileSync(join(this.programs, 'kubectl'), ['--kubeconfig', this.cluster.kubeconfig(), ...args], { encoding: 'utf8' })
  }

  /** Those that are there. */
  async drop(...all: readonly Named[]): Promise<void> {
    for (const named of all) await this.client.delete(named, { gracePeriodSeconds: 0 }).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]()
    await this.cluster[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true })
  }
}
