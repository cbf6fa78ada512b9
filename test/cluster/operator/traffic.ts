// SPDX-License-Identifier: Apache-2.0
/** Pods and a service that have connections of every kind, while the operator changes something. Layer: test. */
import type { Load } from '../../../lab/traffic/load.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { AGNHOST_IMAGE } from '../../../testkit/kubernetes/build/images.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { HTTP_PORT, type RunningPod } from '../pods.ts'

export const ECHO_PORT = 9000

interface Workload {
  readonly kind: 'DaemonSet' | 'Deployment'
  readonly namespace: string
  readonly app: string
  readonly spec?: object
  readonly container?: object
}

/** Pods of agnhost by a controller. */
export function workload({ kind, namespace, app, spec, container }: Workload): object {
  const readinessProbe = { httpGet: { path: '/healthz', port: HTTP_PORT }, periodSeconds: 1 }
  const own = { name: 'main', image: AGNHOST_IMAGE, args: ['netexec', `--http-port=${HTTP_PORT}`], readinessProbe, ...container }
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { namespace, name: app },
    spec: {
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ ...own, imagePullPolicy: 'Never' }] } },
      ...spec,
    },
  }
}

export function service(namespace: string, app: string, ports: readonly object[]): object {
  const spec = { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack', selector: { app }, ports }
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: app }, spec }
}

/** Cluster addresses, and the node port of the port of this name. */
export async function served(
  cluster: Cluster,
  { namespace, app, port: name }: { readonly namespace: string; readonly app: string; readonly port: string },
): Promise<{ readonly addresses: readonly string[]; readonly nodePort: number }> {
  const found = await cluster.get('service', app, '-n', namespace)
  const port = listAt(found, 'spec.ports').find((one) => textAt(one, 'name') === name)
  return { addresses: listAt(found, 'spec.clusterIPs').map(String), nodePort: numberAt(port, 'nodePort') ?? 0 }
}

export function nodeAddresses(cluster: Cluster): readonly string[] {
  return cluster.lab.topology.nodes.map(({ addresses }) => addresses[0]?.split('/')[0] ?? '')
}

/** From each pod: streams to the other and through the cluster addresses, new connections through these and through
 * node ports. */
export async function loadOf(cluster: Cluster, namespace: string, pods: readonly RunningPod[]): Promise<Load> {
  const { addresses, nodePort } = await served(cluster, { namespace, app: 'web', port: 'echo' })
  const by = (address: string, port = ECHO_PORT, proto: 'tcp' | 'udp' = 'tcp') => ({ proto, address, port })
  const others = (pod: RunningPod): readonly string[] => pods.flatMap((other) => (other === pod ? [] : other.addresses))
  return {
    flows: pods.map((pod) => ({
      from: pod.name,
      rate: 50,
      to: [...others(pod).flatMap((address) => [by(address), by(address, ECHO_PORT, 'udp')]), ...addresses.map((address) => by(address))],
    })),
    requests: pods.flatMap(({ name: from }) => [
      ...addresses.map((address) => ({ from, to: by(address), rate: 20 })),
      ...nodeAddresses(cluster).map((address) => ({ from, to: by(address, nodePort), rate: 20 })),
    ]),
  }
}
