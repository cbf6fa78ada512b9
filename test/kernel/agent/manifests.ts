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

interface PodSpec {
  readonly node: string
  /** default unless given */
  readonly namespace?: string
  readonly labels: Readonly<Record<string, string>>
}

/** A pod of any node. */
export function labelled(name: string, ip: string, { node: nodeName, namespace = 'default', labels }: PodSpec): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
  }
}

type MatchLabels = Readonly<Record<string, string>>

/** Pods with these labels are reached by those with others, on TCP 8080, and by no other client. */
export function onlyFrom(name: string, labels: MatchLabels, peers: MatchLabels): object {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace: 'default' },
    spec: {
      podSelector: { matchLabels: labels },
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: { matchLabels: peers } }], ports: [{ protocol: 'TCP', port: 8080 }] }],
    },
  }
}

/** Pods of that application of a namespace: a rule for each of so many prefixes, in both directions. */
export function manyPeers(namespace: string, app: string, of: { readonly count: number; readonly net: number }): object {
  const peers = Array.from({ length: of.count }, (_, at) => ({ ipBlock: { cidr: `198.${of.net}.${at >> 8}.${at & 255}/32` } }))
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: app, namespace },
    spec: {
      podSelector: { matchLabels: { app } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: peers }],
      egress: [{ to: peers }],
    },
  }
}

export function hostEndpoint(name: string, spec: Readonly<Record<string, unknown>>): unknown {
  return { apiVersion: 'netplane.io/v3', kind: 'HostEndpoint', metadata: { name, labels: { host: name } }, spec }
}

export function globalPolicy(name: string, spec: Readonly<Record<string, unknown>>): unknown {
  return { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name }, spec }
}
