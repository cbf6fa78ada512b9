// SPDX-License-Identifier: Apache-2.0
/** What objects are rendered from, and what they have in common. Layer: lib/render (pure). */
import type { Computed } from './computed.ts'

/** The DaemonSet, its container, account and roles. */
export const NODE = 'netplane-node'

/** Where pods read the endpoint that was not given to them; in their own namespace. */
export const ENDPOINT_MAP = 'cluster-services-endpoint'

export interface Endpoint {
  readonly host: string
  readonly port: string
}

/** That config map. */
export function endpointMap(namespace: string, { host, port }: Endpoint): object {
  const data = { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: ENDPOINT_MAP, namespace }, data }
}

export interface RenderInput {
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** undefined: pods read it from the config map of their namespace, where there is one */
  readonly endpoint: Endpoint | undefined
  /** of the agents; {@link NODE} where it is not given: one that an older version has made rolls by its own name */
  readonly daemonSet?: string
  /** fields of FelixConfiguration that no such object can say otherwise for these agents */
  readonly settings?: Readonly<Record<string, string>>
}

/** Variables of a container by which it finds the API server. `endpoint` undefined: by the config map, where there is
 * one. */
export function endpointVariables(endpoint: Endpoint | undefined): readonly object[] {
  const asked = (key: string): object => ({ name: key, valueFrom: { configMapKeyRef: { name: ENDPOINT_MAP, key, optional: true } } })
  if (endpoint === undefined) return [asked('CLUSTER_SERVICE_HOST'), asked('CLUSTER_SERVICE_PORT')]
  return [
    { name: 'CLUSTER_SERVICE_HOST', value: endpoint.host },
    { name: 'CLUSTER_SERVICE_PORT', value: endpoint.port },
  ]
}

export function labelsOf(name: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'netplane' }
}

export function pullSecrets({ computed: { imagePullSecrets } }: Pick<RenderInput, 'computed'>): object {
  return imagePullSecrets.length === 0 ? {} : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }
}

/** Folders of the node that pods of ours have, by the names of their volumes. */
const HOST_FOLDERS = {
  bpf: ['Directory', () => '/sys/fs/bpf'],
  run: ['DirectoryOrCreate', () => '/run/netplane'],
  keep: ['DirectoryOrCreate', () => '/var/lib/netplane'],
  netns: ['DirectoryOrCreate', () => '/run/netns'],
  proc: ['Directory', () => '/proc'],
  cgroup: ['Directory', () => '/sys/fs/cgroup'],
  'xtables-lock': ['FileOrCreate', () => '/run/xtables.lock'],
  'cni-conf': ['DirectoryOrCreate', ({ confDir }) => confDir],
  'cni-bin': ['DirectoryOrCreate', ({ binDir }) => binDir],
  logs: ['DirectoryOrCreate', () => '/var/log/pods'],
  'node-root': ['Directory', () => '/'],
} as const satisfies Readonly<Record<string, readonly [type: string, path: (computed: Pick<Computed, 'confDir' | 'binDir'>) => string]>>

/** Folders that agents write, wherever pods are mounted them. */
export function writtenFolders(computed: Computed): readonly string[] {
  const names = ['run', 'keep', ...(computed.cni === 'None' ? [] : (['cni-conf', 'cni-bin'] as const))] as const
  return names.map((name) => HOST_FOLDERS[name][1](computed))
}

export function hostVolumes(computed: Computed, names: readonly (keyof typeof HOST_FOLDERS)[]): readonly object[] {
  return names.map((name) => {
    const [type, path] = HOST_FOLDERS[name]
    return { name, hostPath: { path: path(computed), type } }
  })
}
