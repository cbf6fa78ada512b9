// SPDX-License-Identifier: Apache-2.0
/** Writes a directory of pods and of the policies that are for them, always the same for the same size.
 * Layer: bench. */
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { mix32 } from '#lib/base/hash.ts'
import { STAMP, uid, writeJson, writeNodes, NODES } from './generate.ts'

export interface PolicyClusterSize {
  readonly pods: number
  readonly policies: number
}

type Manifest = Readonly<Record<string, unknown>>

/** Namespaces of ten applications each: so many combinations of labels. */
const NAMESPACES = 50
const COMBINATIONS = 500
const APPS = COMBINATIONS / NAMESPACES
/** objects in one folder */
const FOLDER = 1000
const TIERS = ['platform', 'security']

/** Node, configuration, namespaces and tiers, then a file for each pod and policy. */
export function writePolicyCluster(directory: string, size: PolicyClusterSize, spec: Manifest): void {
  writeNodes(directory, spec)
  writeJson(join(directory, 'frame.json'), { apiVersion: 'v1', kind: 'List', items: frame() })
  for (let at = 0; at < size.pods; at++) {
    if (at % FOLDER === 0) mkdirSync(join(directory, folderOf(at)), { recursive: true })
    writeJson(join(directory, podFile(at)), pod(at))
  }
  mkdirSync(join(directory, 'policies'))
  for (let at = 0; at < size.policies; at++) writeJson(join(directory, 'policies', `${at}.json`), policy(at))
}

/** Namespaces and tiers: what pods and policies are in. */
export function frame(): readonly Manifest[] {
  const namespaces = Array.from({ length: NAMESPACES }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: `ns${at}`, labels: { 'kubernetes.io/metadata.name': `ns${at}`, team: `team${at % 10}` } },
  }))
  const tiers = TIERS.map((name, at) => ({
    apiVersion: 'netplane.io/v3',
    kind: 'Tier',
    metadata: { name },
    spec: { order: 100 * (at + 1), defaultAction: 'Pass' },
  }))
  return [...namespaces, ...tiers]
}

/** Puts pod `at`, which was not among those written, in place by rename(). */
export function addPod(directory: string, at: number): void {
  mkdirSync(join(directory, folderOf(at)), { recursive: true })
  const stage = join(directory, folderOf(at), '.staged')
  writeJson(stage, pod(at))
  renameSync(stage, join(directory, podFile(at)))
}

/** Both of its addresses. */
export function podAddresses(at: number): readonly [v4: string, v6: string] {
  return [`10.${1 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`, `fd00:10::${(at + 1).toString(16)}`]
}

/** Pods that no cluster of up to 10,000 has: even ones on the first node, odd ones on the second. */
export function newPod(at: number): number {
  return NODES * COMBINATIONS + (at % 2) * COMBINATIONS + Math.floor(at / 2)
}

/** Each node has pods of every combination, one after the other. */
function nodeOfPod(at: number): string {
  return `node-${Math.floor(at / COMBINATIONS) % NODES}`
}

function folderOf(at: number): string {
  return `pods-${String(Math.floor(at / FOLDER)).padStart(2, '0')}`
}

function podFile(at: number): string {
  return join(folderOf(at), `pod-${at}.json`)
}

export function pod(at: number): Manifest {
  const combination = at % COMBINATIONS
  const name = `app-${at}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: `ns${combination % NAMESPACES}`,
      uid: uid(5, at),
      resourceVersion: String(1000 + at),
      creationTimestamp: STAMP,
      labels: {
        app: `app${Math.floor(combination / NAMESPACES)}`,
        version: `v${mix32(combination) % 5}`,
        tier: combination % 3 === 0 ? 'front' : 'back',
      },
    },
    spec: {
      nodeName: nodeOfPod(at),
      serviceAccountName: 'default',
      containers: [{ name: 'main', image: 'app', ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }] }],
    },
    status: { phase: 'Running', podIPs: podAddresses(at).map((ip) => ({ ip })) },
  }
}

/** Most are a team's own; one in ten is for all, one in five in a tier of others. */
export function policy(at: number): Manifest {
  if (at % 20 === 7) return clusterPolicy(at)
  if (at % 20 === 13) return globalPolicy(at)
  return at % 5 === 4 ? tierPolicy(at) : networkPolicy(at)
}

/** For one application of one namespace: from two others, one of them elsewhere, some of it from outside. */
function networkPolicy(at: number): Manifest {
  const peer = (rule: number): Manifest => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': `ns${rule === 0 ? at % NAMESPACES : mix32(at) % NAMESPACES}` } },
    podSelector: { matchLabels: { app: appOf(2 * at + rule), ...(at % 4 === 0 ? { tier: 'front' } : {}) } },
  })
  const outside = { ipBlock: { cidr: `203.0.${at % 250}.0/24`, except: [`203.0.${at % 250}.128/25`] } }
  const ports = [
    { protocol: 'TCP', port: 8000 + (at % 50), endPort: 8001 + (at % 50) },
    ...(at % 6 === 0 ? [{ protocol: 'TCP', port: 'http' }] : []),
  ]
  const peers = [peer(0), at % 10 === 0 ? outside : peer(1)]
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { ...metadata(at), namespace: `ns${at % NAMESPACES}` },
    spec: {
      podSelector: { matchLabels: { app: appOf(at), ...(at % 3 === 0 ? { version: `v${at % 5}` } : {}) } },
      policyTypes: at % 2 === 0 ? ['Ingress', 'Egress'] : ['Ingress'],
      ingress: peers.map((one) => ({ from: [one], ports })),
      ...(at % 2 === 0 ? { egress: peers.map((one) => ({ to: [one], ports })) } : {}),
    },
  }
}

function tierPolicy(at: number): Manifest {
  const tier = TIERS[Math.floor(at / 5) % 2] ?? ''
  const source = { selector: `app == '${appOf(at + 1)}' && tier == 'front'`, namespaceSelector: `team == 'team${mix32(at) % 10}'` }
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'NetworkPolicy',
    metadata: { ...metadata(at), name: `${tier}.policy-${at}`, namespace: `ns${at % NAMESPACES}` },
    spec: {
      tier,
      order: at,
      selector: `app in { '${appOf(at)}', '${appOf(at + 3)}' } && !has(hidden)`,
      types: ['Ingress'],
      ingress: [
        { action: 'Deny', protocol: 'TCP', source, destination: { ports: ['9000:9100', 22] } },
        { action: 'Allow', protocol: 'UDP', source: { nets: [`198.18.${at % 250}.0/24`] }, destination: { ports: [53] } },
        { action: 'Pass' },
      ],
    },
  }
}

function globalPolicy(at: number): Manifest {
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'GlobalNetworkPolicy',
    metadata: { ...metadata(at), name: `security.policy-${at}` },
    spec: {
      tier: 'security',
      order: at,
      selector: `app == '${appOf(at)}' && version == 'v${at % 5}'`,
      types: ['Ingress'],
      ingress: [
        {
          action: 'Deny',
          source: { selector: `version == 'v${(at + 1) % 5}' && tier == 'back'` },
          protocol: 'TCP',
          destination: { ports: [at] },
        },
        { action: 'Pass' },
      ],
    },
  }
}

function clusterPolicy(at: number): Manifest {
  const team = (number: number): Manifest => ({ namespaceSelector: { matchLabels: { team: `team${number % 10}` } } })
  return {
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    metadata: metadata(at),
    spec: {
      tier: 'Admin',
      priority: at,
      subject: { pods: { ...team(at), podSelector: { matchLabels: { app: appOf(at) } } } },
      ingress: [
        {
          action: 'Deny',
          from: [{ namespaces: { matchLabels: { team: `team${(at + 3) % 10}` } } }],
          protocols: [{ tcp: { destinationPort: { number: 5000 + (at % 100) } } }],
        },
      ],
    },
  }
}

function appOf(at: number): string {
  return `app${mix32(at) % APPS}`
}

function metadata(at: number): { readonly name: string } & Manifest {
  return { name: `policy-${at}`, uid: uid(6, at), resourceVersion: String(1000 + at), creationTimestamp: STAMP }
}
