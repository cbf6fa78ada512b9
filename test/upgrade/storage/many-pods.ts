// SPDX-License-Identifier: Apache-2.0
/** A cluster of many pods, and the policies that an older installation has stored for them. Layer: test. */
import type { Manifest } from '../../support/build.ts'
import { raw } from '../stored/stored.ts'

export interface Size {
  readonly pods: number
  readonly namespaces: number
  /** in each namespace, each with a policy */
  readonly apps: number
  readonly nodes: number
}

export interface ManyPods {
  readonly cluster: readonly Manifest[]
  readonly stored: readonly Manifest[]
}

const upTo = <T>(count: number, make: (at: number) => T): readonly T[] => Array.from({ length: count }, (_, at) => make(at))

export function manyPods({ pods, namespaces, apps, nodes }: Size): ManyPods {
  return {
    cluster: [
      ...upTo(namespaces, (at) => ({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: `ns${at}`, labels: { team: `team${at % 5}` } },
      })),
      ...upTo(nodes, nodeAt),
      ...upTo(pods, (at) => podAt(at, { namespaces, apps, nodes })),
    ],
    stored: [
      ...upTo(namespaces, (at) => raw('NetworkSet', `ns${at}/partners`, { spec: { nets: [`198.51.${at}.0/24`, `203.0.113.${at}/32`] } })),
      ...upTo(namespaces, (at) => upTo(apps, (app) => policyOf(`ns${at}`, app, apps))).flat(),
      raw('GlobalNetworkPolicy', 'default.rest', { spec: { order: 2000, types: ['Ingress', 'Egress'], ingress: [{ action: 'Deny' }] } }),
      ...upTo(nodes, (at) =>
        raw('HostEndpoint', `n${at}-eth0`, { spec: { node: `n${at}`, interfaceName: 'eth0', expectedIPs: [`192.168.0.${at + 1}`] } }),
      ),
    ],
  }
}

function nodeAt(at: number): Manifest {
  const status = { addresses: [{ type: 'InternalIP', address: `192.168.0.${at + 1}` }] }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: `n${at}` }, spec: {}, status }
}

/** No two pods have the same labels, as those of a StatefulSet. */
function podAt(at: number, { namespaces, apps, nodes }: Omit<Size, 'pods'>): Manifest {
  const podIP = `10.${10 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`
  const labels = { app: `app${Math.floor(at / namespaces) % apps}`, 'statefulset.kubernetes.io/pod-name': `p${at}` }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: `ns${at % namespaces}`, name: `p${at}`, labels },
    spec: { nodeName: `n${at % nodes}`, containers: [{ name: 'c', ports: [{ name: 'web', containerPort: 8080 }] }] },
    status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
  }
}

function policyOf(namespace: string, app: number, apps: number): Manifest {
  const clients = [1, 2].map((by) => `'app${(app + by) % apps}'`).join(', ')
  const tcp = { action: 'Allow', protocol: 'TCP' }
  const spec = {
    order: app,
    selector: `app == 'app${app}'`,
    types: ['Ingress', 'Egress'],
    ingress: [
      { ...tcp, source: { selector: `app in {${clients}}` }, destination: { ports: [80, 443, 'web'] } },
      { ...tcp, source: { namespaceSelector: `team == 'team${app % 5}'` }, destination: { ports: [8000 + app] } },
    ],
    egress: [
      { action: 'Allow', protocol: 'UDP', destination: { ports: [53] } },
      { action: 'Allow', destination: { nets: ['10.10.0.0/20'] } },
      { ...tcp, destination: { selector: 'all()', ports: ['5000:5100'] } },
    ],
  }
  return raw('NetworkPolicy', `${namespace}/default.app${app}`, { spec })
}
