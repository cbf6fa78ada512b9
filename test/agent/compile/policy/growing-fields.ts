// SPDX-License-Identifier: Apache-2.0
/** Objects of which one field is as long as one wants. Layer: test. */
import { clusterPolicy, kubernetesPolicy, namespace, pod, v3 } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

export interface Growing {
  readonly of: (size: number) => Manifest
  /** where 600 would not do */
  readonly size?: number
}

type Fields = Readonly<Record<string, Growing>>

function many<T>(size: number, one: (at: number) => T): T[] {
  return Array.from({ length: size }, (_, at) => one(at))
}

function record(size: number): Readonly<Record<string, string>> {
  return Object.fromEntries(many(size, (at) => [`k${at}`, `v${at}`]))
}

const net = (at: number): string => `10.${(at >> 8) & 255}.${at & 255}.0/24`
const host = (at: number): string => `100.64.${at >> 8}.${at & 255}/32`
const asked = (operator: string, size: number) => many(size, (at) => ({ key: `k${at}`, operator }))
const valued = (operator: string, size: number) => many(size, (at) => ({ key: `k${at}`, operator, values: [`v${at}`] }))

/** Selectors in the form of the Kubernetes API. */
const SELECTORS: Readonly<Record<string, (size: number) => Manifest>> = {
  'labels that must be there': (size) => ({ matchExpressions: asked('Exists', size) }),
  'labels that must not be there': (size) => ({ matchExpressions: asked('DoesNotExist', size) }),
  'labels with a value each': (size) => ({ matchLabels: record(size) }),
  'labels without a value each': (size) => ({ matchExpressions: valued('NotIn', size) }),
  'values of one label': (size) => ({ matchExpressions: [{ key: 'app', operator: 'In', values: many(size, (at) => `v${at}`) }] }),
  'values that one label must not have': (size) => ({
    matchExpressions: [{ key: 'app', operator: 'NotIn', values: many(size, (at) => `v${at}`) }],
  }),
  'lists of values of one label': (size) => ({
    matchExpressions: many(size, (at) => ({ key: 'app', operator: 'In', values: ['web', `v${at}`] })),
  }),
  'values of one label, one by one': (size) => ({
    matchExpressions: many(size, (at) => ({ key: 'app', operator: 'NotIn', values: [`v${at}`] })),
  }),
}

function withSelectors(where: string, of: (selector: Manifest) => Manifest): Fields {
  return Object.fromEntries(
    Object.entries(SELECTORS).map(([what, selector]) => [`${what}, ${where}`, { of: (size) => of(selector(size)), size: 2500 }]),
  )
}

const ingress = (rule: Manifest): Manifest => kubernetesPolicy('shop/p', { ingress: [rule] })
const egress = (rule: Manifest): Manifest => kubernetesPolicy('shop/p', { policyTypes: ['Egress'], egress: [rule] })
const numbers = (size: number) => many(size, (at) => ({ port: 1 + 2 * at }))
const blocks = (size: number) => many(size, (at) => ({ ipBlock: { cidr: net(at) } }))

/** One rule, of as many peers as ports. */
export const PEERS_AND_PORTS: Growing = { of: (size) => egress({ to: blocks(size), ports: numbers(size) }) }

const NETWORK_POLICY: Fields = {
  ...withSelectors('of the subject', (podSelector) => kubernetesPolicy('shop/p', { podSelector })),
  ...withSelectors('of a peer', (podSelector) => ingress({ from: [{ podSelector }] })),
  ...withSelectors("of a peer's namespace", (namespaceSelector) => egress({ to: [{ namespaceSelector }] })),
  rules: { of: (size) => kubernetesPolicy('shop/p', { ingress: many(size, (at) => ({ ports: [{ port: 1 + at }] })) }) },
  'peers by labels': { of: (size) => ingress({ from: many(size, (at) => ({ podSelector: { matchLabels: { app: `a${at}` } } })) }) },
  'peers that all pods are': {
    of: (size) => egress({ to: valued('NotIn', size).map((one) => ({ podSelector: { matchExpressions: [one] } })) }),
  },
  'peers by prefix': { of: (size) => ingress({ from: blocks(size) }) },
  'prefixes within one': {
    of: (size) => egress({ to: many(size, (at) => ({ ipBlock: { cidr: '10.0.0.0/8', except: [net(at)] } })) }),
  },
  'parts that a prefix is without': { of: (size) => ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: many(size, net) } }] }) },
  ports: { of: (size) => ingress({ ports: numbers(size) }) },
  'ports of peers': { of: (size) => egress({ to: blocks(100), ports: numbers(size) }) },
  'peers with ports': { of: (size) => egress({ to: blocks(size), ports: numbers(100) }) },
  'ranges of ports': { of: (size) => egress({ ports: many(size, (at) => ({ port: 1 + 4 * at, endPort: 2 + 4 * at })) }) },
  'names of ports': { of: (size) => ingress({ ports: many(size, (at) => ({ port: `p${at}` })) }) },
  "names of peers' ports": {
    of: (size) =>
      egress({ to: [{ podSelector: SELECTORS['labels that must be there']?.(1000) }], ports: many(size, (at) => ({ port: `p${at}` })) }),
  },
  'peers and ports': PEERS_AND_PORTS,
}

const cluster = (rule: Manifest): Manifest => clusterPolicy('p', { ingress: [{ action: 'Accept', from: [{ namespaces: {} }], ...rule }] })
const tcp = (number: number): Manifest => ({ tcp: { destinationPort: { number } } })
const outwards = (to: readonly Manifest[], more: Manifest = {}): Manifest =>
  clusterPolicy('p', { egress: [{ action: 'Deny', to, ...more }] })

const CLUSTER_POLICY: Fields = {
  ...withSelectors('of the subject', (namespaces) =>
    clusterPolicy('p', { subject: { namespaces }, ingress: [{ action: 'Deny', from: [{ namespaces: {} }] }] }),
  ),
  ...withSelectors('of a peer', (podSelector) => cluster({ from: [{ pods: { namespaceSelector: {}, podSelector } }] })),
  ...withSelectors('of nodes', (nodes) => outwards([{ nodes }])),
  rules: {
    of: (size) =>
      clusterPolicy('p', { ingress: many(size, (at) => ({ action: 'Deny', from: [{ namespaces: {} }], protocols: [tcp(1 + at)] })) }),
  },
  peers: { of: (size) => cluster({ from: many(size, (at) => ({ namespaces: { matchLabels: { team: `t${at}` } } })) }) },
  networks: { of: (size) => outwards([{ networks: many(size, net) }]) },
  protocols: { of: (size) => cluster({ protocols: many(size, (at) => tcp(1 + 2 * at)) }) },
  'names of ports': { of: (size) => cluster({ protocols: many(size, (at) => ({ destinationNamedPort: `p${at}` })) }) },
  'peers and protocols': {
    of: (size) =>
      outwards(
        many(size, (at) => ({ networks: [net(at)] })),
        { protocols: many(size, (at) => tcp(1 + 2 * at)) },
      ),
  },
}

const admin = (spec: Manifest): Manifest => ({
  apiVersion: 'policy.networking.k8s.io/v1alpha1',
  kind: 'AdminNetworkPolicy',
  metadata: { name: 'p' },
  spec: { priority: 5, subject: { namespaces: {} }, ...spec },
})

const ADMIN_POLICY: Fields = {
  ...withSelectors('of the subject', (podSelector) => admin({ subject: { pods: { namespaceSelector: {}, podSelector } } })),
  'peers and ports': {
    of: (size) =>
      admin({
        ingress: [
          {
            action: 'Allow',
            from: many(size, (at) => ({ namespaces: { matchLabels: { team: `t${at}` } } })),
            ports: many(size, (at) => ({ portNumber: { port: 1 + 2 * at } })),
          },
        ],
      }),
  },
}

/** Selectors of netplane.io/v3, by what is written between their parts. */
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'labels that must be there': (size) => many(size, (at) => `has(k${at})`).join(' && '),
  'labels of which one must not be there': (size) => many(size, (at) => `!has(k${at})`).join(' || '),
  'values of one label, of which one will do': (size) => many(size, (at) => `app == 'v${at}'`).join(' || '),
  'values that it does not have': (size) => many(size, (at) => `app != 'v${at}'`).join(' && '),
  'parts of values': (size) => many(size, (at) => `app contains 'v${at}'`).join(' || '),
  'values in a list': (size) => `app in {${many(size, (at) => `'v${at}'`).join()}}`,
  'alternatives with two parts each': (size) => many(size, (at) => `(app == 'v${at}' && has(k${at}))`).join(' || '),
  'negations of negations': (size) => `${'!'.repeat(2 * size)}has(app)`,
}

function withTexts(where: string, of: (selector: string) => Manifest): Fields {
  return Object.fromEntries(
    Object.entries(TEXTS).map(([what, text]) => [`${what}, ${where}`, { of: (size) => of(text(size)), size: 2500 }]),
  )
}

const global = (spec: Manifest): Manifest => v3('GlobalNetworkPolicy', 'p', spec)
const allow = { action: 'Allow', protocol: 'TCP' }
const from = (source: Manifest, more: Manifest = {}): Manifest => global({ ingress: [{ ...allow, source, ...more }] })

const V3_POLICY: Fields = {
  ...withTexts('of the subject', (selector) => global({ selector, ingress: [allow] })),
  ...withTexts('of a peer', (selector) => from({ selector })),
  ...withTexts('of what a peer must not be', (notSelector) => from({ notSelector })),
  ...withTexts("of a peer's namespace", (namespaceSelector) => from({ namespaceSelector, selector: 'has(app)' })),
  ...withTexts("of the subject's service account", (serviceAccountSelector) => global({ serviceAccountSelector, ingress: [allow] })),
  rules: { of: (size) => global({ ingress: many(size, (at) => ({ ...allow, source: { selector: `app == 'a${at}'` } })) }) },
  'rules of what comes before translation': {
    of: (size) =>
      global({ preDNAT: true, applyOnForward: true, ingress: many(size, (at) => ({ action: 'Deny', source: { nets: [host(at)] } })) }),
  },
  nets: { of: (size) => from({ nets: many(size, net) }) },
  'the same net': { of: (size) => from({ nets: many(size, () => net(1)) }) },
  'nets that it is not in': { of: (size) => from({ notNets: many(size, net) }) },
  ports: { of: (size) => from({ ports: many(size, (at) => 1 + 2 * at) }) },
  'ports that it has not': { of: (size) => from({ notPorts: many(size, (at) => 1 + 2 * at) }) },
  'names of ports': { of: (size) => from({ selector: 'all()', ports: many(size, (at) => `p${at}`) }) },
  'names of ports that it has not': { of: (size) => from({ selector: 'all()', notPorts: many(size, (at) => `p${at}`) }) },
  'names and numbers of ports that it has not': {
    of: (size) => from({ selector: 'all()', notPorts: many(size, (at) => (at % 2 === 0 ? `p${at}` : 1 + 2 * at)) }),
  },
  'service accounts': { of: (size) => from({ serviceAccounts: { names: many(size, (at) => `s${at}`) } }) },
}

const OTHERS: Fields = {
  'prefixes of a network set': { of: (size) => v3('GlobalNetworkSet', 's', { nets: many(size, net) }) },
  'the same prefix of a network set': { of: (size) => v3('NetworkSet', 'shop/s', { nets: many(size, () => net(1)) }), size: 10_000 },
  'labels of a network set': {
    of: (size) => ({ ...v3('GlobalNetworkSet', 's', { nets: [net(1)] }), metadata: { name: 's', labels: record(size) } }),
  },
  'addresses of a host endpoint': {
    of: (size) => v3('HostEndpoint', 'h', { node: 'n1', expectedIPs: many(size, (at) => host(at).slice(0, -3)) }),
  },
  'the same address of a host endpoint': {
    of: (size) => v3('HostEndpoint', 'h', { node: 'n1', expectedIPs: many(size, () => '192.0.2.1') }),
    size: 10_000,
  },
  'ports of a host endpoint': {
    of: (size) =>
      v3('HostEndpoint', 'h', { node: 'n1', interfaceName: 'eth1', ports: many(size, (at) => ({ name: `p${at}`, port: 1 + at })) }),
  },
  'profiles of a host endpoint': {
    of: (size) => v3('HostEndpoint', 'h', { node: 'n1', interfaceName: 'eth1', profiles: many(size, (at) => `x${at}`) }),
  },
  'rules of a profile': {
    of: (size) => v3('Profile', 'kns.shop', { ingress: many(size, (at) => ({ ...allow, source: { nets: [host(at)] } })) }),
  },
  'labels of a profile': { of: (size) => v3('Profile', 'kns.shop', { labelsToApply: record(size) }) },
  'labels of a pod': { of: (size) => pod('shop/big', { node: 'n1', ips: ['10.0.0.9'], labels: record(size) }) },
  'ports of a pod': {
    of: (size) => pod('shop/big', { node: 'n1', ips: ['10.0.0.9'], ports: many(size, (at) => ({ name: `p${at}`, port: 1 + at })) }),
  },
  'labels of a namespace': { of: (size) => namespace('shop', record(size)) },
}

/** By kind, then by field. */
export const FIELDS: Readonly<Record<string, Fields>> = {
  NetworkPolicy: NETWORK_POLICY,
  ClusterNetworkPolicy: CLUSTER_POLICY,
  AdminNetworkPolicy: ADMIN_POLICY,
  'policies of netplane.io/v3': V3_POLICY,
  'what policies are about': OTHERS,
}
