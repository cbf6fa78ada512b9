// SPDX-License-Identifier: Apache-2.0
/** Manifests for a node with one service. Layer: test. */

export function node(name: string, address: string, podCIDR: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDRs: [podCIDR] },
    status: { addresses: [{ type: 'InternalIP', address }] },
  }
}

export function pod(name: string, ip: string): unknown {
  const metadata = { name, namespace: 'default' }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
  }
}

export const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    type: 'NodePort',
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10'],
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080, protocol: 'TCP' }],
  },
}

export function slice(...addresses: readonly string[]): unknown {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], nodeName: 'n1', conditions: { ready: true } })),
  }
}

export function felix(cgroup: string, spec: Readonly<Record<string, unknown>> = {}): unknown {
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'default' },
    spec: { cgroupV2Path: cgroup, bpfMapSizeConntrack: 4096, ...spec },
  }
}
