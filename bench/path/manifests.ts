// SPDX-License-Identifier: Apache-2.0
/** The little cluster in which paths are measured: two nodes, a pod to measure from, a backend on each node.
 * Layer: bench (pure). */
import type { Setting } from './result.ts'

export const PORT = 9000
export const POD_CIDR = '10.245.0.0/16'
export const SERVICE_CIDR = '10.97.0.0/16'
const PORTS = ['TCP', 'UDP'].map((protocol) => ({ containerPort: PORT, protocol }))
/** the client inside the cluster; its node is the entry node of node ports too */
export const CLIENT_POD = 'default/client'
export const NEAR_POD = 'default/near'
export const FAR_POD = 'default/far'
export const ENTRY_NODE = 'node-a'
export const OTHER_NODE = 'node-b'
export const ADDRESSES = {
  entryNode: '172.31.0.1',
  otherNode: '172.31.0.2',
  client: '10.245.1.10',
  near: '10.245.1.11',
  far: '10.245.2.11',
}

export const NODES = [
  { name: ENTRY_NODE, address: ADDRESSES.entryNode, podCidr: '10.245.1.0/24', pods: [ADDRESSES.client, ADDRESSES.near] },
  { name: OTHER_NODE, address: ADDRESSES.otherNode, podCidr: '10.245.2.0/24', pods: [ADDRESSES.far] },
]

export interface BenchService {
  readonly name: string
  readonly clusterIp: string
  readonly nodePort: number
  readonly backend: string
  readonly backendNode: string
}

/** One whose backend is on the entry node, one whose backend is on the other. */
export const near: BenchService = {
  name: 'near',
  clusterIp: '10.97.0.11',
  nodePort: 30091,
  backend: ADDRESSES.near,
  backendNode: ENTRY_NODE,
}
export const far: BenchService = { name: 'far', clusterIp: '10.97.0.12', nodePort: 30092, backend: ADDRESSES.far, backendNode: OTHER_NODE }

/** A List, as one file. */
export function clusterManifest(setting: Setting): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...clusterObjects(), ...settingObjects(setting)] }, undefined, 1)
}

function settingObjects(setting: Setting): readonly unknown[] {
  const ours = (kind: string, name: string, spec: unknown): unknown => ({ apiVersion: 'netplane.io/v3', kind, metadata: { name }, spec })
  switch (setting) {
    case 'usual':
      return []
    case 'dsr':
      return [ours('FelixConfiguration', 'default', { bpfExternalServiceMode: 'DSR' })]
    case 'overlay':
      return [ours('IPPool', 'pods', { cidr: POD_CIDR, vxlanMode: 'Always' })]
  }
}

export function clusterObjects(): readonly unknown[] {
  return [
    ...NODES.map(({ name, address, podCidr }) => node(name, address, podCidr)),
    pod(CLIENT_POD, ENTRY_NODE, ADDRESSES.client),
    pod(NEAR_POD, ENTRY_NODE, ADDRESSES.near),
    pod(FAR_POD, OTHER_NODE, ADDRESSES.far),
    ...[near, far].flatMap((service) => [serviceOf(service), sliceOf(service)]),
  ]
}

function node(name: string, address: string, podCidr: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDRs: [podCidr] },
    status: { addresses: [{ type: 'InternalIP', address }] },
  }
}

function pod(key: string, nodeName: string, podIP: string): unknown {
  const [namespace, name] = key.split('/')
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: { nodeName, containers: [{ name: 'traffic', image: 'traffic', ports: PORTS }] },
    status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
  }
}

function serviceOf(service: BenchService): unknown {
  const port = (protocol: string): unknown => ({
    name: protocol.toLowerCase(),
    protocol,
    port: PORT,
    targetPort: PORT,
    nodePort: service.nodePort,
  })
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: service.name },
    spec: {
      type: 'NodePort',
      clusterIP: service.clusterIp,
      clusterIPs: [service.clusterIp],
      ipFamilies: ['IPv4'],
      ports: [port('TCP'), port('UDP')],
    },
  }
}

function sliceOf(service: BenchService): unknown {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', name: service.name, labels: { 'kubernetes.io/service-name': service.name } },
    addressType: 'IPv4',
    ports: ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: PORT })),
    endpoints: [
      { addresses: [service.backend], nodeName: service.backendNode, conditions: { ready: true, serving: true, terminating: false } },
    ],
  }
}
