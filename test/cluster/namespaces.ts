// SPDX-License-Identifier: Apache-2.0
/** A namespace of the cluster that goes with its scope, and all in it, a while later. Layer: test. */
import { waitFor } from '../../lab/wait.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'

export class Namespace implements AsyncDisposable {
  readonly name: string
  readonly #cluster: Cluster

  private constructor(cluster: Cluster, name: string) {
    this.#cluster = cluster
    this.name = name
  }

  /** Ready for pods: its account is there. */
  static async make(cluster: Cluster, name: string): Promise<Namespace> {
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { test: name } } })
    const ready = await waitFor(
      async () => ((await cluster.tryKubectl(['get', 'serviceaccount', 'default', '-n', name])).status === 0 ? true : undefined),
      { timeoutMs: 30_000, everyMs: 200 },
    )
    if (ready !== true) throw new Error(`namespace ${name} has no account`)
    return new Namespace(cluster, name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster.kubectl(['delete', 'namespace', this.name, '--wait=false'])
  }
}
