// SPDX-License-Identifier: Apache-2.0
/** The cluster whose pods come by CNI: its nodes, pools, the pods that stay, and the policies between them.
 * Layer: soak (pure). */
import { at } from '../../lab/raw.ts'
import { addressOf, FAMILIES, felixObject, nodeObject, nodeOf, NODES, PORTS } from '../../testkit/lab/manifests.ts'
import { ANCHORS } from '../cluster.ts'
import { loadOf, byPlace, service, straight, tcp, ways, type Way } from '../flows.ts'
import type { Random } from '../random.ts'

export { NODES }

/** They stay: echo servers on each node, and clients. Their addresses are fixed, so that services and traffic
 * can name them. */
export const STAYING: readonly string[] = [...ANCHORS, 'shell-a', 'shell-b']
export const SHELLS: readonly string[] = ['shell-a', 'shell-b']
/** What echo servers hear and policies allow; the third of {@link PORTS} they never do. */
const OPEN = PORTS.slice(0, 2)

/** Number of the service whose endpoints they are; the API server has the first for itself. */
export const SERVICE = 20
const calm = service(SERVICE)

export const POD_WAYS: readonly Way[] = byPlace([
  ...ways('keeps', ['shell-a'], calm.everywhere),
  ...ways('keeps', ['node/c'], tcp(calm.everywhere)),
  ...ways('keeps', ['client'], calm.onEvery('a')),
  ...ways('control', ['shell-b'], straight('a-1')),
])
export const POD_LOAD = loadOf(POD_WAYS, [
  ...ways('keeps', ['client'], tcp(calm.onEvery('b'))),
  ...ways('keeps', ['shell-b'], tcp(calm.everywhere)),
])

export function clusterObjects(): object[] {
  return [felixObject({}), ...POOLS, ...STAYING.map(stayingPod), basePolicy()]
}

/** Without ranges of their own: all addresses come from pools. */
export function nodeObjects(): { readonly name: string; readonly object: object; readonly status: unknown }[] {
  return NODES.map((name) => {
    const object = nodeObject(name)
    return { name, object: without(object, 'spec', 'status'), status: at(object, 'status') }
  })
}

/** Pods that stay have theirs by name; those that come and go get through blocks of sixteen quickly. */
const POOLS: readonly object[] = [
  pool('staying-v4', { cidr: '10.29.0.0/16', blockSize: 26, assignmentMode: 'Manual' }),
  pool('staying-v6', { cidr: 'fd00:2900::/32', blockSize: 122, assignmentMode: 'Manual' }),
  pool('visitors-v4', { cidr: '10.30.0.0/23', blockSize: 28 }),
  pool('visitors-v6', { cidr: 'fd00:3000::/119', blockSize: 124 }),
]

/** The object but for these fields. */
export function without(object: object, ...fields: readonly string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)))
}

function pool(name: string, spec: object): object {
  return { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name }, spec: { vxlanMode: 'Always', natOutgoing: true, ...spec } }
}

function stayingPod(name: string): object {
  const wish = { 'cni.netplane.io/ipAddrs': JSON.stringify(FAMILIES.map((family) => addressOf(name, family))) }
  return podManifest({ name, node: nodeOf(name), labels: { who: name }, annotations: wish })
}

export interface PodManifest {
  readonly name: string
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

export function podManifest({ name, node, labels, annotations = {} }: PodManifest): object {
  const container = { name: 'main', image: 'none' }
  // graceful deletion: the kubelet hears of it, and removes the pod when its processes have ended
  const spec = { nodeName: node, terminationGracePeriodSeconds: 30, containers: [container] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name, labels, annotations }, spec }
}

/** Every pod is under it all the time: what no other policy allows is closed. */
function basePolicy(): object {
  const ports = OPEN.flatMap((port) => ['TCP', 'UDP'].map((protocol) => ({ port, protocol })))
  return networkPolicy('base', { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports }] })
}

/** Others come on top, for some pods and peers, and never open what is to stay closed. All of them at once. */
export function extraPolicies(random: Random): object[] {
  return random.some([0, 1, 2, 3, 4]).map((index) => networkPolicy(`extra-${index}`, extraSpec(random)))
}

function extraSpec(random: Random): object {
  const select = (): object =>
    random.pick([{}, { matchLabels: { kind: 'visitor' } }, { matchLabels: { who: random.pick(STAYING) } }, hue(random)])
  const peers = [{ podSelector: select() }, { ipBlock: { cidr: random.pick(['10.30.0.0/24', '172.29.0.0/24', 'fd00:3000::/120']) } }]
  const ports = random.some([80, 443, 8080, 9001], 0.6).map((port) => ({ port, protocol: random.pick(['TCP', 'UDP']) }))
  const ingress = ports.length === 0 ? [] : [{ from: random.some(peers, 0.7), ports }]
  // egress: everything stays open for the pods that it selects
  return random.chance(0.3)
    ? { podSelector: select(), policyTypes: ['Ingress', 'Egress'], ingress, egress: [{}] }
    : { podSelector: select(), policyTypes: ['Ingress'], ingress }
}

function hue(random: Random): object {
  return { matchExpressions: [{ key: 'hue', operator: random.pick(['In', 'NotIn']), values: ['none', ...random.some(HUES)] }] }
}

export const HUES: readonly string[] = ['red', 'green', 'blue']

function networkPolicy(name: string, spec: object): object {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { namespace: 'default', name }, spec }
}
