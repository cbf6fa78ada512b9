// SPDX-License-Identifier: Apache-2.0
/** What an administrator does with deploy/operator, as docs/operator.md has it, and what is there then. Layer: test. */
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { at, listAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { CTR } from '../../../testkit/kubernetes/node.ts'

export const OPERATOR = 'netplane-operator'
export const SYSTEM = 'netplane-system'
const OURS = 'app.kubernetes.io/managed-by=netplane-operator'

/** In the order in which they are applied. */
export const FILES = ['operator-crds.yaml', 'netplane-operator.yaml', 'custom-resources.yaml'].map((name) =>
  join(packageRoot(), 'deploy/operator', name),
)

/** Kinds of what the operator makes. */
const MADE = [
  ...[
    'serviceaccounts',
    'configmaps',
    'daemonsets',
    'deployments',
    'roles',
    'rolebindings',
    'clusterroles',
    'clusterrolebindings',
    'namespaces',
  ],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
]
const TOLD = ['installations', 'netplanestatuses', 'ippools', 'customresourcedefinitions']

/** The endpoint of the API server, for the operator and by it for the agents. */
export async function putEndpoint(cluster: Cluster, host: string, port = cluster.endpoint.port): Promise<void> {
  const data = { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: String(port) }
  const metadata = { namespace: OPERATOR, name: 'cluster-services-endpoint' }
  await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
}

/** All of it but the Installation. */
export async function installOperator(cluster: Cluster): Promise<void> {
  const [definitions = '', operator = ''] = FILES
  await cluster.kubectl(['create', 'namespace', OPERATOR])
  await putEndpoint(cluster, cluster.endpoint.host)
  await cluster.kubectl(['apply', '--server-side', '-f', definitions])
  await cluster.kubectl(['apply', '--server-side', '-f', operator])
}

export async function applyInstallation(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['apply', '-f', FILES[2] ?? ''])
}

/** Throws with what the statuses say when it is not in time. */
export async function available(cluster: Cluster, seconds = 60): Promise<void> {
  for (const what of [['installation/default'], ['netplanestatus', '--all']]) {
    const line = ['wait', '--for=condition=Available', ...what, `--timeout=${seconds}s`]
    const { status, stderr } = await cluster.tryKubectl(line, { timeoutMs: (seconds + 10) * 1000 })
    if (status === 0) continue
    const pods = await cluster.kubectl(['get', 'pods', '-A', '-o', 'wide'])
    const events = await cluster.kubectl(['get', 'events', '-n', 'netplane-system', '--sort-by=.lastTimestamp'])
    throw new Error(`${stderr}${await cluster.kubectl(['get', 'netplanestatus'])}${pods}${events}`)
  }
}

/** "DaemonSet netplane-system/netplane-node" to its resourceVersion: of all that the operator writes. */
export async function versions(cluster: Cluster): Promise<ReadonlyMap<string, string>> {
  const objects = [...(await made(cluster)), ...listAt(await cluster.get(TOLD.join()), 'items')]
  return new Map(objects.map((object) => [textOf(object), textAt(object, 'metadata.resourceVersion') ?? '']))
}

/** What the operator has made, without what another run of it would have otherwise. */
export async function endState(cluster: Cluster): Promise<readonly string[]> {
  const told = listAt(await cluster.get(TOLD.join()), 'items')
  const parts = ['metadata.labels', 'spec', 'rules', 'roleRef', 'subjects', 'status.computed']
  return [...(await made(cluster)), ...told].map((one) => `${textOf(one)} ${JSON.stringify(parts.map((part) => at(one, part)))}`).sort()
}

/** "DaemonSet netplane-system/netplane-node": all that the operator has made and is there. */
export async function madeNames(cluster: Cluster): Promise<readonly string[]> {
  return (await made(cluster)).map(textOf).sort()
}

/** Resolves when kubectl says that it is gone. */
export async function deleteInstallation(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['delete', 'installation', 'default', '--timeout=120s'], { timeoutMs: 130_000 })
}

/** The condition of this type of a component's status. */
export async function condition(cluster: Cluster, component: string, type: string): Promise<unknown> {
  const { status, stdout } = await cluster.tryKubectl(['get', 'netplanestatus', component, '-o', 'json'])
  if (status !== 0) return undefined
  return listAt(JSON.parse(stdout), 'status.conditions').find((one) => textAt(one, 'type') === type)
}

export interface OurPod {
  readonly name: string
  readonly node: string
  readonly container: string
}

/** The operator's that runs; throws when there is none in time. */
export async function operatorPod(cluster: Cluster): Promise<OurPod> {
  return await runningPod(cluster, ['-n', OPERATOR])
}

/** The agent's of this node. */
async function agentPod(cluster: Cluster, node: string): Promise<OurPod> {
  return await runningPod(cluster, [
    '-n',
    SYSTEM,
    '-l',
    'app.kubernetes.io/name=netplane-node',
    '--field-selector',
    `spec.nodeName=${node}`,
  ])
}

async function runningPod(cluster: Cluster, which: readonly string[]): Promise<OurPod> {
  const look = async (): Promise<OurPod | undefined> => {
    const pods = listAt(await cluster.get('pods', ...which), 'items')
    const pod = pods.find((one) => at(one, 'metadata.deletionTimestamp') === undefined)
    const [status] = listAt(pod, 'status.containerStatuses')
    if (at(status, 'state.running') === undefined) return undefined
    const container = (textAt(status, 'containerID') ?? '').replace('containerd://', '')
    return { name: textAt(pod, 'metadata.name') ?? '', node: textAt(pod, 'spec.nodeName') ?? '', container }
  }
  const found = await waitFor(look, { timeoutMs: 60_000, everyMs: 100 })
  if (found === undefined) throw new Error(`no pod runs of ${which.join(' ')}`)
  return found
}

/** What ends the operator that runs at once, by SIGKILL. */
export async function killerOf(cluster: Cluster): Promise<() => Promise<void>> {
  return await killerOfPod(cluster, OPERATOR, await operatorPod(cluster))
}

/** Ends the agent of this node by SIGKILL. */
export async function killAgent(cluster: Cluster, node: string): Promise<void> {
  const kill = await killerOfPod(cluster, SYSTEM, await agentPod(cluster, node))
  await kill()
}

/** Its pod goes as well: the next one does not wait as long as one that ends again and again has to. */
async function killerOfPod(cluster: Cluster, namespace: string, { name, node, container }: OurPod): Promise<() => Promise<void>> {
  const tasks = await cluster.lab.mustRun(`node/${node}`, [...CTR, 'tasks', 'ls'])
  const pid = Number(new RegExp(`^${container} +(\\d+) `, 'm').exec(tasks)?.[1])
  return async () => {
    process.kill(pid, 'SIGKILL')
    await cluster.kubectl(['delete', 'pod', name, '-n', namespace, '--force', '--grace-period=0'])
  }
}

/** The next operator acts at once; without this it waits until the Lease of one that was killed has run out. */
export async function freeLease(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['delete', 'lease', OPERATOR, '-n', OPERATOR, '--ignore-not-found'])
}

/** Who acts, by the Lease. */
export async function leaseHolder(cluster: Cluster): Promise<string> {
  return textAt(await cluster.get('lease', OPERATOR, '-n', OPERATOR), 'spec.holderIdentity') ?? ''
}

async function made(cluster: Cluster): Promise<readonly unknown[]> {
  return listAt(await cluster.get(MADE.join(), '-A', '-l', OURS), 'items')
}

function textOf(object: unknown): string {
  return `${textAt(object, 'kind') ?? ''} ${[textAt(object, 'metadata.namespace') ?? [], textAt(object, 'metadata.name')].flat().join('/')}`
}
