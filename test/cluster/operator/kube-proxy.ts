// SPDX-License-Identifier: Apache-2.0
/** The real kube-proxy on a cluster's nodes, as kubeadm has it there: its DaemonSet in an image made here.
 * Layer: test. */
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { at, listAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { KUBE_PROXY_IMAGE, kubeProxyImage } from '../../../testkit/kubernetes/build/kube-proxy-image.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { KUBE_PROXY, kubeProxyObjects } from '../../../testkit/kubernetes/kube-proxy/objects.ts'
import { proxyRules, type ProxyMode } from '../../../testkit/kubernetes/kube-proxy/process.ts'
import { CTR } from '../../../testkit/kubernetes/node.ts'

const DAEMON_SET = `daemonset/${KUBE_PROXY.name}`
const HEALTH_PORT = 10256
/** A look starts processes: more of them would keep the processors from what tests measure meanwhile. */
const LOOK_MS = 500
/** of its node selector: no node has it */
const STOP_LABEL = 'netplane.io/kube-proxy'

/** Resolves when one runs on every node, and each has written its rules. */
export async function installKubeProxy(cluster: Cluster, mode: ProxyMode): Promise<void> {
  const archive = await kubeProxyImage(cluster.programs)
  await mapLimited(cluster.nodes, 2, (node) =>
    cluster.lab.mustRun(`node/${node}`, [...CTR, 'image', 'import', archive], { timeoutMs: 300_000 }),
  )
  const { endpoint } = cluster
  const { podCidrs } = cluster.addresses
  await cluster.apply(...kubeProxyObjects({ mode, image: KUBE_PROXY_IMAGE, podCidrs, endpoint }))
  await kubeProxyServes(cluster)
}

/** Throws when one does not run on every node in time, or has not written its rules. */
export async function kubeProxyServes(cluster: Cluster): Promise<void> {
  const line = ['rollout', 'status', DAEMON_SET, '-n', KUBE_PROXY.namespace, '--timeout=60s']
  await cluster.kubectl(line, { timeoutMs: 70_000 })
  await onEveryNode(cluster, 'kube-proxy is not healthy', (node) => isHealthy(cluster, node))
}

/** Resolves when its rules on every node serve these addresses, of both families. */
export async function kubeProxyKnows(cluster: Cluster, mode: ProxyMode, addresses: readonly string[]): Promise<void> {
  const knows = async (node: string): Promise<boolean> => {
    const rules = (await proxyRules(cluster.lab, node, mode)).join('\n')
    return addresses.every((address) => rules.includes(address))
  }
  await onEveryNode(cluster, `kube-proxy has no rules for ${addresses.join(' and ')}`, knows)
}

export async function removeKubeProxy(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['delete', DAEMON_SET, '-n', KUBE_PROXY.namespace, '--cascade=foreground', '--timeout=60s'], { timeoutMs: 70_000 })
}

/** By its node selector, as an administrator would. Its rules stay on the nodes. */
export async function stopKubeProxy(cluster: Cluster): Promise<void> {
  await select(cluster, 'disabled')
  const gone = async (): Promise<true | undefined> => {
    const pods = await cluster.get('pods', '-n', KUBE_PROXY.namespace, '-l', `k8s-app=${KUBE_PROXY.name}`)
    return listAt(pods, 'items').length === 0 ? true : undefined
  }
  if ((await waitFor(gone, { timeoutMs: 60_000, everyMs: LOOK_MS })) === undefined) throw new Error('kube-proxy runs still')
}

/** Resolves when it serves again. */
export async function startKubeProxy(cluster: Cluster): Promise<void> {
  await select(cluster, null)
  await kubeProxyServes(cluster)
}

/** As one that manages it. `value` null: it does so no more. */
export async function labelKubeProxy(cluster: Cluster, label: string, value: string | null): Promise<void> {
  await patch(cluster, { metadata: { labels: { [label]: value } } })
}

/** "disabled": no node is to run it. */
export async function stopSelectorOf(cluster: Cluster): Promise<string | undefined> {
  const selector = at(await cluster.get(DAEMON_SET, '-n', KUBE_PROXY.namespace), 'spec.template.spec.nodeSelector')
  return textOf(fieldsOf(selector)[STOP_LABEL]) || undefined
}

async function select(cluster: Cluster, value: string | null): Promise<void> {
  await patch(cluster, { spec: { template: { spec: { nodeSelector: { [STOP_LABEL]: value } } } } })
}

async function patch(cluster: Cluster, change: object): Promise<void> {
  await cluster.kubectl(['patch', DAEMON_SET, '-n', KUBE_PROXY.namespace, '--type=merge', '-p', JSON.stringify(change)])
}

/** Resolves when the nodes have no rules of it. */
export async function kubeProxyForgotten(cluster: Cluster, mode: ProxyMode): Promise<void> {
  const isClean = async (node: string): Promise<boolean> => !(await proxyRules(cluster.lab, node, mode)).some((rules) => isServing(rules))
  await onEveryNode(cluster, 'there are rules of kube-proxy', isClean)
}

/** Throws with this reason and the nodes of which it does not hold in time. */
async function onEveryNode(cluster: Cluster, reason: string, holds: (node: string) => Promise<boolean>): Promise<void> {
  let others: readonly string[] = []
  const look = async (): Promise<true | undefined> => {
    others = (await mapLimited(cluster.nodes, 2, async (node) => ((await holds(node)) ? [] : [node]))).flat()
    return others.length === 0 ? true : undefined
  }
  if ((await waitFor(look, { timeoutMs: 30_000, everyMs: LOOK_MS })) === undefined)
    throw new Error(`${others.join(', ')}: ${reason} in time`)
}

/** It says so once its rules are written. */
async function isHealthy(cluster: Cluster, node: string): Promise<boolean> {
  const { status } = await cluster.lab.run(`node/${node}`, ['curl', '-sf', '--max-time', '2', `http://127.0.0.1:${HEALTH_PORT}/healthz`])
  return status === 0
}

/** kubelet has chains of that name as well, which stay. */
function isServing(rules: string): boolean {
  return /KUBE-(SERVICES|NODEPORTS|SVC)|table ip6? kube-proxy/.test(rules)
}
