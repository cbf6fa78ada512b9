// SPDX-License-Identifier: Apache-2.0
/** Pods of a real cluster as places that the lab's traffic comes from and goes to. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { toolCommand } from '../../lab/paths.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import type { Spawner } from '../../lab/traffic/traffic.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { CTR } from '../../testkit/kubernetes/node.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import type { RunningPod } from './pods.ts'

/** A place is a pod's name. What runs there has the pod's network and the files of its node, and ends with the lab. */
export class PodPlaces implements Spawner {
  readonly #cluster: Cluster
  readonly #networks: ReadonlyMap<string, readonly [node: string, path: string]>

  private constructor(cluster: Cluster, networks: ReadonlyMap<string, readonly [node: string, path: string]>) {
    this.#cluster = cluster
    this.#networks = networks
  }

  static async of(cluster: Cluster, pods: readonly RunningPod[]): Promise<PodPlaces> {
    const networks = pods.map(async (pod) => [pod.name, [pod.node, await networkOf(cluster, pod)]] as const)
    return new PodPlaces(cluster, new Map(await Promise.all(networks)))
  }

  spawn(place: string, command: readonly string[]): ChildProcess {
    const [node, path] = this.#networks.get(place) ?? []
    if (node === undefined || path === undefined) throw new Error(`no pod ${place}`)
    return this.#cluster.lab.spawn(`node/${node}`, ['nsenter', `--net=${path}`, '--', ...command])
  }

  /** In each of them: what the lab's traffic talks to. */
  async serve(port: number): Promise<void> {
    for (const place of this.#networks.keys()) {
      const listen = ['tcp', 'udp'].flatMap((protocol) => ['--listen', `${protocol}:${port}`])
      const child = this.spawn(place, [...toolCommand('echo'), '--name', place, ...listen])
      let said = false
      if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => (said ||= line === 'listening'))
      if ((await waitFor(() => (said ? true : undefined), { timeoutMs: HANG_MS })) === undefined)
        throw new Error(`the server of ${place} does not listen`)
    }
  }
}

/** The path of its network namespace, on its node. */
async function networkOf(cluster: Cluster, { node, name, container }: RunningPod): Promise<string> {
  const info: unknown = JSON.parse(await cluster.lab.mustRun(`node/${node}`, [...CTR, 'containers', 'info', container]))
  const network = listAt(info, 'Spec.linux.namespaces').find((space) => textAt(space, 'type') === 'network')
  const path = textAt(network, 'path')
  if (path === undefined) throw new Error(`pod ${name} has no network`)
  return path
}
