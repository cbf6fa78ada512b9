// SPDX-License-Identifier: Apache-2.0
/** Writes a directory of JSON manifests as large as one likes, always the same for the same size. Layer: bench. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const NODE_NAME = 'node-0'
export const NODE_ADDRESS = '192.168.77.10'
export const NODES = 20
/** when everything was created */
export const STAMP = '2026-01-01T00:00:00Z'
/** services in one directory */
const FOLDER = 1000

export interface ClusterSize {
  readonly services: number
  /** of each service */
  readonly endpoints: number
}

/** Node, configuration, then a Service and an EndpointSlice file for each service. */
export function writeCluster(directory: string, size: ClusterSize, spec: Readonly<Record<string, unknown>> = {}): void {
  writeNodes(directory, spec)
  for (let at = 0; at < size.services; at++) {
    if (at % FOLDER === 0) mkdirSync(join(directory, folderOf(at)), { recursive: true })
    writeJson(join(directory, folderOf(at), `${nameOf(at)}-service.json`), service(at))
    writeJson(join(directory, sliceFile(at)), slice(at, size.endpoints))
  }
}

/** What every cluster has: nodes and the configuration. */
export function writeNodes(directory: string, spec: Readonly<Record<string, unknown>>): void {
  mkdirSync(directory, { recursive: true })
  writeJson(join(directory, 'nodes.json'), { apiVersion: 'v1', kind: 'List', items: Array.from({ length: NODES }, (_, at) => node(at)) })
  writeJson(join(directory, 'configuration.json'), {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'default' },
    spec,
  })
}

/** Puts another slice of service `at` in place by rename(); `generation` makes the address of its first endpoint
 * another. */
export function replaceSlice(directory: string, at: number, options: { readonly endpoints: number; readonly generation: number }): void {
  const stage = join(directory, folderOf(at), '.staged')
  writeJson(stage, slice(at, options.endpoints, options.generation))
  renameSync(stage, join(directory, sliceFile(at)))
}

export function clusterIp(at: number): string {
  return `10.96.${(at >> 8) + 1}.${at & 255}`
}

/** Generations beyond 0 move the first endpoint out of the range that the others are in. */
export function endpointAddress(at: number, endpoint: number, generation = 0): string {
  if (endpoint === 0 && generation > 0) return `10.${128 + ((generation >> 8) & 63)}.${generation & 255}.${(at % 250) + 1}`
  const host = at * 16 + endpoint
  return `10.${10 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}`
}

function nameOf(at: number): string {
  return `service-${String(at).padStart(5, '0')}`
}

function folderOf(at: number): string {
  return `services-${String(Math.floor(at / FOLDER)).padStart(2, '0')}`
}

function sliceFile(at: number): string {
  return join(folderOf(at), `${nameOf(at)}-slice.json`)
}

/** As long as a real one, and different in every object. */
export function uid(kind: number, at: number, part = 0): string {
  return `${kind.toString(16).padStart(8, '0')}-0000-4000-8000-${(at * 4096 + part).toString(16).padStart(12, '0')}`
}

const NODE_LABELS = { 'kubernetes.io/os': 'linux' }

function nodeAddress(at: number): string {
  return `192.168.77.${10 + at}`
}

/** What its agent says of it. */
export function nodeNetwork(at: number): object {
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'NodeNetwork',
    metadata: { name: `node-${at}` },
    spec: {
      addresses: [nodeAddress(at)],
      podCIDRs: [],
      subnets: ['192.168.77.0/24'],
      labels: NODE_LABELS,
      interfaces: [{ name: 'eth0', addresses: [nodeAddress(at)] }],
    },
  }
}

export function node(at: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${at}`, uid: uid(1, at), creationTimestamp: STAMP, labels: NODE_LABELS },
    spec: {},
    status: {
      addresses: [
        { type: 'InternalIP', address: nodeAddress(at) },
        { type: 'Hostname', address: `node-${at}` },
      ],
    },
  }
}

export function service(at: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(2, at, nameOf(at)),
    spec: {
      type: 'ClusterIP',
      clusterIP: clusterIp(at),
      clusterIPs: [clusterIp(at)],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      selector: { app: nameOf(at) },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
    },
    status: { loadBalancer: {} },
  }
}

export function slice(at: number, endpoints: number, generation = 0): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...metadata(3, at, `${nameOf(at)}-x7k2p`),
      generation: generation + 1,
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Service', name: nameOf(at), uid: uid(2, at), controller: true, blockOwnerDeletion: true },
      ],
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, endpoint) => ({
      addresses: [endpointAddress(at, endpoint, generation)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${(at + endpoint) % NODES}`,
      zone: `zone-${endpoint % 3}`,
      targetRef: {
        kind: 'Pod',
        namespace: 'default',
        name: `${nameOf(at)}-5d8f7c9b4-${String(endpoint).padStart(5, '0')}`,
        uid: uid(4, at, endpoint),
      },
    })),
  }
}

function metadata(kind: number, at: number, name: string): Readonly<Record<string, unknown>> {
  return {
    name,
    namespace: 'default',
    uid: uid(kind, at),
    resourceVersion: String(1000 + at),
    creationTimestamp: STAMP,
    labels: {
      app: nameOf(at),
      'kubernetes.io/service-name': nameOf(at),
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    },
  }
}

/** One file. */
export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, JSON.stringify(value))
}
