// SPDX-License-Identifier: Apache-2.0
/** Nodes without machines in a real cluster, with agents without programs where pods of agents are, until it is ended:
 * `kubelets.ts --kubeconfig FILE`. A ConfigMap has which, and when. It prints a line for each node that joins, for
 * each mode that one comes to, and for one that neither we nor kube-proxy serve. Layer: testkit. */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { Informer } from '#lib/api/informer.ts'
import type { ApiObject, Collection } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { systemClock } from '#lib/base/clock.ts'
import { at, listAt, textAt } from '../../../lab/raw.ts'
import { KUBE_PROXY } from '../kube-proxy/objects.ts'
import { NOT_READY, TEST_NODES } from '../kubelets/joining.ts'
import { TestAgents } from '../kubelets/test-agents.ts'
import { TestKubelets } from '../kubelets/test-kubelets.ts'

/** From a pod's binding to its first status, and from a change to what an agent says of it. */
const DELAY_MS = 500
/** of kube-proxy's node selector: it is to run on no node */
const STOPPED = 'netplane.io/kube-proxy'

const { values } = parseArgs({ options: { kubeconfig: { type: 'string', default: '' } } })
await using client = new ApiClient({ server: fromKubeconfig(values.kubeconfig) })
await using kubelets = new TestKubelets({ client, startMs: DELAY_MS })
const joined = new Set<string>()
const held = new Set<string>()

function informer(collection: Collection, onChange: () => void = () => undefined): Informer {
  return new Informer({ client, clock: systemClock, collection, onChange, onFailure: () => undefined })
}

const wanted = informer({ apiVersion: 'v1', kind: 'ConfigMap', namespace: TEST_NODES.namespace }, () => void follow())
const statuses = informer({ apiVersion: 'operator.netplane.io/v1', kind: 'NetplaneStatus' }, () => void follow())
const daemonSets = informer({ apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: KUBE_PROXY.namespace })

/** What is asked for of a node, done once. */
async function follow(): Promise<void> {
  const { namespace, name } = TEST_NODES
  const all = fieldsOf(at(wanted.objects.get(`${namespace}/${name}`), 'data'))
  for (const [node, asked] of Object.entries(all)) await followOne(node, textOf(asked))
}

async function followOne(node: string, asked: string): Promise<void> {
  if (!joined.has(node)) {
    if (!isNow(asked)) return
    joined.add(node)
    console.log(`${node} joins`)
    await kubelets.add([node])
  } else if (asked === NOT_READY && !held.has(node)) {
    held.add(node)
    await kubelets.hold(node)
  } else if (asked === '' && held.delete(node)) await kubelets.wake(node)
}

/** Empty: at once. */
function isNow(moment: string): boolean {
  const told = (status: ApiObject): string =>
    listAt(status, 'status.conditions')
      .map((one) => textAt(one, 'message'))
      .join('\n')
  return moment === '' || [...statuses.objects.values()].some((status) => told(status).includes(moment))
}

const stop = new AbortController()
const running = Promise.all([wanted, statuses, daemonSets].map((one) => one.run(stop.signal)))
const nodes = (): readonly string[] =>
  kubelets.pods.flatMap((pod) =>
    pod.metadata.labels?.['app.kubernetes.io/name'] === 'netplane-node' ? (textAt(pod, 'spec.nodeName') ?? []) : [],
  )
await using stack = new AsyncDisposableStack()
stack.use(
  new TestAgents({
    client,
    nodes: () => (daemonSets.synced ? nodes() : []),
    isProxyExpected: () => {
      const proxy = daemonSets.objects.get(`${KUBE_PROXY.namespace}/${KUBE_PROXY.name}`)
      return proxy !== undefined && !(STOPPED in fieldsOf(at(proxy, 'spec.template.spec.nodeSelector')))
    },
    delayMs: DELAY_MS,
    // real nodes are beside these: no seed has the same moments again
    random: Math.random,
    onMode: ({ node, mode }) => {
      console.log(`${node} ${mode}`)
    },
    onUnserved: (node) => {
      console.log(`${node} unserved`)
    },
  }),
)
await once(process, 'SIGTERM')
stop.abort()
await running
