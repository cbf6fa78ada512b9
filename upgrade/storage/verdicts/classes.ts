// SPDX-License-Identifier: Apache-2.0
/** Pods, host endpoints and addresses outside, in classes of which every rule of both worlds says the same.
 * Layer: upgrade (pure). */
import { formatAddr, isV4, maskAddr, parseAddr, type Addr } from '#lib/base/ip.ts'
import { hostEndpointLabels, namespaceProfile, podLabels, serviceAccountProfile } from '#lib/model/effective-labels.ts'
import { hasOwnAddresses, type Pod } from '#lib/model/pod.ts'
import type { HostEndpoint, NamedPort } from '#lib/model/policy.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { PolicyWorld } from '#lib/policy/peers.ts'
import type { Matchers } from './matchers.ts'

export type Subject =
  | { readonly kind: 'pod'; readonly pod: Pod }
  | { readonly kind: 'host'; readonly endpoint: HostEndpoint }
  /** of no endpoint, or of one that is seen by its address alone */
  | { readonly kind: 'outside' }

export interface Member {
  readonly subject: Subject
  /** "shop/web", "host endpoint eth0", "198.51.100.0" */
  readonly text: string
  readonly addresses: readonly Addr[]
  readonly ports: readonly NamedPort[]
}

export interface EndpointClass {
  readonly first: Member
  /** undefined: it is the only one */
  readonly second: Member | undefined
  readonly size: number
}

/** One world, with what its rules ask. */
export interface JudgedWorld {
  readonly world: PolicyWorld
  readonly matchers: Matchers
}

/** Addresses that no rule is likely to name. */
const ANYWHERE = ['203.0.113.254', '2001:db8:ffff::fe'].map(parseAddr)

export function classesOf(before: JudgedWorld, after: JudgedWorld): readonly EndpointClass[] {
  const worlds = [before, after]
  const byText = Map.groupBy(membersOf(worlds), (member) => worlds.map((world) => textIn(world, member)).join('\n'))
  return [...byText.values()].flatMap((members) => {
    const [first, second] = members
    return first === undefined ? [] : [{ first, second, size: members.length }]
  })
}

function membersOf(worlds: readonly JudgedWorld[]): readonly Member[] {
  const pods = worlds.flatMap(({ world }) => [...world.pods.values()]).filter(hasOwnAddresses)
  const hosts = worlds.flatMap(({ world }) => [...world.hostEndpoints.values()])
  const nodes = worlds.flatMap(({ world }) => [...world.nodes.values()]).flatMap(({ addresses }) => addresses)
  const prefixes = worlds.flatMap(({ matchers }) => matchers.prefixes()).map(({ addr, bits }) => maskAddr(addr, bits))
  const outside = [...nodes, ...prefixes, ...ANYWHERE].map((addr): Member => ({
    ...{ subject: { kind: 'outside' }, text: formatAddr(addr), addresses: [addr], ports: [] },
  }))
  const all = [...pods.map(podMember), ...hosts.map(hostMember), ...outside]
  return [...new Map(all.map((member) => [member.text, member])).values()]
}

function podMember(pod: Pod): Member {
  return { subject: { kind: 'pod', pod }, text: nameKey(pod), addresses: pod.podIPs, ports: pod.ports }
}

function hostMember(endpoint: HostEndpoint): Member {
  const { name, expectedIPs, ports } = endpoint
  return { subject: { kind: 'host', endpoint }, text: `host endpoint ${name}`, addresses: expectedIPs, ports }
}

function textIn({ world, matchers }: JudgedWorld, { subject, addresses, ports }: Member): string {
  const seen = addresses.map((addr) => `${isV4(addr) ? 'v4' : 'v6'} ${matchers.address(addr)}`)
  return [subject.kind, ...ownTexts(world, matchers, subject), ...seen, JSON.stringify(ports)].join('|')
}

/** By what its own packets are judged. */
function ownTexts(world: PolicyWorld, matchers: Matchers, subject: Subject): readonly string[] {
  switch (subject.kind) {
    case 'pod': {
      const { namespace, serviceAccount } = subject.pod
      const profiles = [namespaceProfile(namespace), serviceAccountProfile(namespace, serviceAccount)]
      return [matchers.labels(podLabels(subject.pod, world)), ...profiles.filter((name) => world.profiles.has(name))]
    }
    case 'host': {
      // another world may have another one of the name
      const endpoint = world.hostEndpoints.get(subject.endpoint.name)
      return endpoint === undefined ? [] : [matchers.labels(hostEndpointLabels(endpoint, world)), ...endpoint.profiles]
    }
    case 'outside':
      return []
  }
}
