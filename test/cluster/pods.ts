// SPDX-License-Identifier: Apache-2.0
/** Pods of a real cluster, and commands in them that need no API server. Layer: test. */
import type { Outcome } from '../../lab/processes/command.ts'
import { at, listAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { AGNHOST_IMAGE } from '../../testkit/kubernetes/build/images.ts'
import { CTR } from '../../testkit/kubernetes/node.ts'

export const HTTP_PORT = 8080
const READY_MS = 60_000
const PRINT_AGAIN = 3

export interface PodSpec {
  readonly name: string
  readonly node: string
  readonly labels?: Readonly<Record<string, string>>
  /** what it runs instead, for a shell */
  readonly script?: string
  /** of its node, for its HTTP port */
  readonly hostPort?: number
  /** conditions that it is not Ready without */
  readonly gates?: readonly string[]
}

export interface RunningPod extends PodSpec {
  readonly namespace: string
  readonly addresses: readonly string[]
  /** containerd's name of its container */
  readonly container: string
}

/** It answers with its name at /hostname, and with the client's address at /clientip. */
export function podManifest(namespace: string, spec: PodSpec): object {
  const ports = [{ containerPort: HTTP_PORT, ...(spec.hostPort === undefined ? {} : { hostPort: spec.hostPort }) }]
  const readinessProbe = { httpGet: { path: '/healthz', port: HTTP_PORT }, periodSeconds: 1 }
  const run = spec.script === undefined ? { args: ['netexec', `--http-port=${HTTP_PORT}`] } : { command: ['sh', '-c', spec.script] }
  const container = { name: 'main', image: AGNHOST_IMAGE, ...run, ports, readinessProbe }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: spec.name, labels: spec.labels ?? {} },
    spec: {
      nodeName: spec.node,
      terminationGracePeriodSeconds: 0,
      containers: [{ ...container, imagePullPolicy: 'Never' }],
      readinessGates: (spec.gates ?? []).map((conditionType) => ({ conditionType })),
    },
  }
}

/** Makes them and waits until all are Ready. Throws with what those say that are not. */
export async function runPods(cluster: Cluster, namespace: string, specs: readonly PodSpec[]): Promise<RunningPod[]> {
  await cluster.apply(...specs.map((spec) => podManifest(namespace, spec)))
  const names = specs.map(({ name }) => name)
  const ready = await readyPods(cluster, {
    namespace,
    count: specs.length,
    isOne: (pod) => names.includes(textAt(pod, 'metadata.name') ?? ''),
  })
  return specs.map((spec) => ({ ...spec, ...runningPod(namespace, spec.name, ready) }))
}

/** Those that a controller makes with this label `app`, once there are so many and all are Ready. */
export async function podsOf(cluster: Cluster, namespace: string, { app, count }: { readonly app: string; readonly count: number }) {
  const isOne = (pod: unknown): boolean => textAt(pod, 'metadata.labels.app') === app && at(pod, 'metadata.deletionTimestamp') === undefined
  const ready = await readyPods(cluster, { namespace, count, isOne })
  return ready.map((pod) => runningPod(namespace, textAt(pod, 'metadata.name') ?? '', ready))
}

interface WantedPods {
  readonly namespace: string
  readonly count: number
  readonly isOne: (pod: unknown) => boolean
}

async function readyPods(cluster: Cluster, { namespace, count, isOne }: WantedPods): Promise<readonly unknown[]> {
  const ready = await waitFor(
    async () => {
      const pods = listAt(await cluster.get('pods', '-n', namespace), 'items').filter(isOne)
      return pods.length === count && pods.every(isReady) ? pods : undefined
    },
    { timeoutMs: READY_MS, everyMs: 200 },
  )
  if (ready === undefined) throw new Error(`not Ready in ${READY_MS} ms:\n${await whyNot(cluster, namespace)}`)
  return ready
}

/** One of each family. Throws where a pod has fewer, or there is none. */
export function addressesOf(pod: RunningPod | undefined): readonly string[] {
  if (pod?.addresses.length !== 2) throw new Error(`${pod?.name ?? 'no pod'}: ${pod?.addresses.length ?? 0} addresses`)
  return pod.addresses
}

/** How many addresses pods of this namespace have in blocks. */
export async function heldBy(cluster: Cluster, namespace: string): Promise<number> {
  const blocks = listAt(await cluster.get('ipamblocks'), 'items')
  return blocks.flatMap((block) => listAt(block, 'spec.allocations')).filter((one) => textAt(one, 'namespace') === namespace).length
}

/** Runs a command in its container, by its node's containerd. */
export async function inPod(cluster: Cluster, pod: RunningPod, command: readonly string[]): Promise<Outcome> {
  const id = `test-${Math.random().toString(36).slice(2)}`
  return await cluster.lab.run(`node/${pod.node}`, [...CTR, 'tasks', 'exec', '--exec-id', id, pod.container, ...command])
}

/** What a GET of this path is answered with; undefined when it is not, within two seconds. Nothing that is asked
 * answers with nothing: but of a command that ends at once containerd's client loses what it printed, one in 200. */
export async function ask(cluster: Cluster, pod: RunningPod, url: string): Promise<string | undefined> {
  for (let attempt = 0; ; attempt++) {
    const { status, stdout } = await inPod(cluster, pod, curl(url))
    if (status !== 0) return undefined
    if (stdout !== '' || attempt === PRINT_AGAIN) return stdout
  }
}

/** As {@link ask}, from a place of the lab. */
export async function askFrom(cluster: Cluster, place: string, url: string): Promise<string | undefined> {
  const { status, stdout } = await cluster.lab.run(place, curl(url))
  return status === 0 ? stdout : undefined
}

/** "http://[fd00::1]:8080/hostname" */
export function urlOf(address: string, port: number, path = '/hostname'): string {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}${path}`
}

function curl(url: string): string[] {
  return ['curl', '-gs', '--fail', '--max-time', '2', url]
}

function isReady(pod: unknown): boolean {
  return listAt(pod, 'status.conditions').some((entry) => textAt(entry, 'type') === 'Ready' && textAt(entry, 'status') === 'True')
}

function runningPod(namespace: string, name: string, pods: readonly unknown[]): RunningPod {
  const found = pods.find((pod) => textAt(pod, 'metadata.name') === name)
  const [container] = listAt(found, 'status.containerStatuses')
  return {
    name,
    namespace,
    node: textAt(found, 'spec.nodeName') ?? '',
    addresses: listAt(found, 'status.podIPs').flatMap((entry) => textAt(entry, 'ip') ?? []),
    container: (textAt(container, 'containerID') ?? '').replace('containerd://', ''),
  }
}

async function whyNot(cluster: Cluster, namespace: string): Promise<string> {
  const pods = await cluster.kubectl(['get', 'pods', '-n', namespace, '-o', 'wide'])
  const events = await cluster.kubectl(['get', 'events', '-n', namespace, '--field-selector', 'type=Warning'])
  return pods + events
}
