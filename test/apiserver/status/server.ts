// SPDX-License-Identifier: Apache-2.0
/** A real API server for what agents tell, with the Node n1 and nothing else before each test. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Subject } from '#agent/status/outbox.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'

export const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' } as const
export const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web-0' } as const
export const RUNNING = new AbortController().signal

/** Everything that is due at this time. */
export async function tell(subject: Subject, now: number): Promise<number> {
  const due = subject.due(now)
  for (const { write } of due) await write(RUNNING)
  return due.length
}

export class StatusServer implements AsyncDisposable {
  readonly cluster: LoopbackCluster
  readonly client: ApiClient

  private constructor(cluster: LoopbackCluster) {
    this.cluster = cluster
    this.client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  }

  static async start(folder: string): Promise<StatusServer> {
    const server = new StatusServer(await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder }))
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }
    await server.client.create(asApiObject(account))
    return server
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]()
    await this.cluster[Symbol.asyncDispose]()
  }

  async clear(): Promise<void> {
    for (const kind of ['Event', 'Pod', 'Service', 'Node'])
      for (const object of await this.client.list({ apiVersion: 'v1', kind }))
        if (object.metadata.name !== 'kubernetes') await this.client.delete(namedOf(object), { gracePeriodSeconds: 0 })
    await this.client.create(asApiObject({ ...NODE, metadata: { name: NODE.name } }))
  }

  async condition(named: Named, type: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { status } = await this.client.get(named)
    const conditions = isObject(status) ? status['conditions'] : undefined
    return Array.isArray(conditions) ? conditions.filter(isObject).find((one) => one['type'] === type) : undefined
  }

  async version(named: Named): Promise<string | undefined> {
    return (await this.client.get(named)).metadata.resourceVersion
  }

  /** As a kubelet that has started it. */
  async runPod(name: string = POD.name, ...ips: readonly string[]): Promise<void> {
    const podIPs = (ips.length === 0 ? ['10.1.0.7'] : ips).map((ip) => ({ ip }))
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
    await this.client.create(asApiObject({ ...POD, metadata: { namespace: POD.namespace, name }, spec }))
    const conditions = [{ type: 'Ready', status: 'True' }]
    const status = { phase: 'Running', podIP: podIPs[0]?.ip, podIPs, conditions }
    await this.client.patch({ ...POD, name }, { status }, { type: 'merge', subresource: 'status' })
  }

  async podsInStore(): Promise<readonly Pod[]> {
    const objects = await this.client.list({ apiVersion: 'v1', kind: 'Pod' })
    return objects.flatMap((object) => {
      const parsed = parseObject(object, { kind: 'Pod', namespace: object.metadata.namespace ?? '', name: object.metadata.name })
      return parsed.kind === 'ok' && parsed.value.kind === 'Pod' ? [parsed.value] : []
    })
  }
}

/** One for all tests of a file. */
export async function statusServer(): Promise<StatusServer> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-status-'))
  const server = await StatusServer.start(folder)
  beforeEach(() => server.clear())
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })
  return server
}
