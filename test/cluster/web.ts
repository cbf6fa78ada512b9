// SPDX-License-Identifier: Apache-2.0
/** A pod on each node behind a node port, for clients outside. Layer: test. */
import { expect } from 'vitest'
import { listAt, numberAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { askFrom, HTTP_PORT, runPods, urlOf, type RunningPod } from './pods.ts'

export const WEB_LABELS = { app: 'web' }

export interface Web {
  readonly pods: readonly RunningPod[]
  /** of the node port, at node a */
  readonly url: string
}

/** "web-a", "web-b" on those nodes, when each has answered; `nodes`: both when not given. */
export async function makeWeb(cluster: Cluster, namespace: string, nodes: readonly string[] = ['a', 'b']): Promise<Web> {
  const spec = { type: 'NodePort', selector: WEB_LABELS, ports: [{ port: 80, targetPort: HTTP_PORT }] }
  await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'web' }, spec })
  const specs = nodes.map((node) => ({ name: `web-${node}`, node, labels: WEB_LABELS }))
  const pods = await runPods(cluster, namespace, specs)
  const service = await cluster.get('service', 'web', '-n', namespace)
  const address = cluster.lab.topology.nodes[0]?.addresses[0]?.split('/')[0] ?? ''
  const url = urlOf(address, numberAt(listAt(service, 'spec.ports')[0], 'nodePort') ?? 0)
  await answeredBy(
    specs.map(({ name }) => name),
    () => askFrom(cluster, 'client', url),
  )
  return { pods, url }
}

/** Asks until these have answered, and no other pod. */
export async function answeredBy(names: readonly string[], question: () => Promise<string | undefined>): Promise<void> {
  const wanted = names.toSorted()
  const last = await waitFor(
    async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, question))
      const seen = [...new Set(answers.map((answer) => answer ?? 'nobody'))].toSorted()
      return seen.join() === wanted.join() ? seen : undefined
    },
    { timeoutMs: HANG_MS, everyMs: 100 },
  )
  expect(last).toEqual(wanted)
}
