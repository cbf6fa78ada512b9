// SPDX-License-Identifier: Apache-2.0
/** Objects as long as an API server takes them are read without holding the event loop for long. Layer: test. */
import { describe, expect, test } from 'vitest'
import type { Sliced } from '#lib/base/async/slices.ts'
import { createInternPool } from '#lib/kube/parse/intern.ts'
import { identify, parseInSlices } from '#lib/kube/parse/parse-object.ts'
import { kubernetesPolicy, node, pod, service, slice, v3 } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'
import { withinBestOfThree } from '../../../support/steady/best-of.ts'
import { stepsOf } from '../../../support/steady/longest-step.ts'

/** chars: the limit of a request to etcd */
const LONGEST = 1_500_000
const MOST_MS = 100

const many = <T>(size: number, one: (at: number) => T): T[] => Array.from({ length: size }, (_, at) => one(at))
const prefix = (at: number): string => `10.${(at >> 8) & 255}.${at & 255}.0/24`
const prefix6 = (at: number): string => `2001:db8:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::/64`
const address = (at: number): string => `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`
const mapped = (at: number): string => `::ffff:${address(at)}`
const labels = (size: number): Manifest => Object.fromEntries(many(size, (at) => [`l${at}`, 'v']))

const from = (peers: readonly Manifest[]): Manifest => kubernetesPolicy('shop/p', { ingress: [{ from: peers }] })
const fromPods = (podSelector: Manifest): Manifest => from([{ podSelector }])
const source = (of: Manifest): Manifest => v3('NetworkPolicy', 'shop/p', { ingress: [{ action: 'Allow', source: of }] })
const set = (nets: readonly string[]): Manifest => v3('NetworkSet', 'shop/s', { nets })
const named = (size: number): { name: string; port: number }[] => many(size, (at) => ({ name: `p${at}`, port: 1 + at }))
const ranged = (loadBalancerSourceRanges: readonly string[]): Manifest =>
  service('shop/web', { type: 'LoadBalancer', spec: { loadBalancerSourceRanges } })
const of4 = (endpoints: readonly string[]): Manifest => slice('shop/web-1', { ports: [{ port: 80 }], addressType: 'IPv4', endpoints })
const addressed = (size: number): Manifest => {
  const internal = many(size >> 1, (at) => ({ type: 'InternalIP', address: `2001:db8::${at.toString(16)}` }))
  return { ...node('n1'), status: { addresses: [...internal, ...many(size >> 1, (at) => ({ type: 'ExternalIP', address: address(at) }))] } }
}
const labelled = (manifest: Manifest, size: number): Manifest => ({
  ...manifest,
  metadata: { ...(manifest['metadata'] as Manifest), labels: labels(size) },
})

/** What any namespace may write, by what there is much of. */
const LONG: Readonly<Record<string, (size: number) => Manifest>> = {
  rules: (size) => kubernetesPolicy('shop/p', { ingress: many(size, (at) => ({ from: [{ ipBlock: { cidr: prefix(at) } }] })) }),
  'peers that are prefixes': (size) => from(many(size, (at) => ({ ipBlock: { cidr: prefix(at) } }))),
  'peers that are prefixes of IPv6': (size) => from(many(size, (at) => ({ ipBlock: { cidr: prefix6(at) } }))),
  'peers with exceptions': (size) => from(many(size, (at) => ({ ipBlock: { cidr: prefix(at), except: [`${address(at << 8)}/26`] } }))),
  'peers with host bits': (size) => from(many(size, (at) => ({ ipBlock: { cidr: prefix(at).replace('.0/', '.9/') } }))),
  'peers that are selectors': (size) => from(many(size, (at) => ({ podSelector: { matchLabels: { app: `a${at}` } } }))),
  'exceptions of one prefix': (size) => from([{ ipBlock: { cidr: '10.0.0.0/8', except: many(size, prefix) } }]),
  'labels that a peer asks for': (size) => fromPods({ matchLabels: labels(size) }),
  'expressions of a peer': (size) => fromPods({ matchExpressions: many(size, (at) => ({ key: `a${at}`, operator: 'Exists' })) }),
  'values of an expression': (size) =>
    fromPods({ matchExpressions: [{ key: 'app', operator: 'In', values: many(size, (at) => `a${at}`) }] }),
  'labels that a policy asks for': (size) => kubernetesPolicy('shop/p', { podSelector: { matchLabels: labels(size) } }),
  'ports of a rule': (size) => kubernetesPolicy('shop/p', { ingress: [{ ports: many(size, (at) => ({ port: 1 + (at % 65_000) })) }] }),
  'names of ports': (size) => kubernetesPolicy('shop/p', { ingress: [{ ports: many(size, (at) => ({ port: `p${at}` })) }] }),
  'rules of v3': (size) =>
    v3('NetworkPolicy', 'shop/p', { ingress: many(size, (at) => ({ action: 'Allow', source: { nets: [prefix(at)] } })) }),
  'prefixes of a rule of v3': (size) => source({ nets: many(size, prefix) }),
  'parts of a selector': (size) => source({ selector: many(size, (at) => `a == "${at}"`).join(' || ') }),
  'values of a selector': (size) => source({ selector: `a in {${many(size, (at) => `"${at}"`).join(',')}}` }),
  'signs of a selector': (size) => source({ selector: `${'!'.repeat(2 * size)}has(app)` }),
  'prefixes of a set': (size) => set(many(size, prefix)),
  'prefixes of IPv6 in a set': (size) => set(many(size, prefix6)),
  'bad addresses in a set': (size) => set(many(size, (at) => `${at}.300.1.1`)),
  'labels of a set': (size) => labelled(set([]), size),
  'labels of a pod': (size) => labelled(pod('shop/a', { node: 'n1', ips: ['10.0.0.1'] }), size),
  'ports of a Service': (size) => service('shop/web', { ports: named(size) }),
  'external addresses': (size) => service('shop/web', { spec: { externalIPs: many(size, address) } }),
  'external addresses in an old form': (size) => service('shop/web', { spec: { externalIPs: many(size, mapped) } }),
  'external addresses that are refused': (size) => service('shop/web', { spec: { externalIPs: many(size, () => '0.0.0.0') } }),
  'addresses of a load balancer that are refused': (size) =>
    service('shop/web', { type: 'LoadBalancer', ingress: many(size, () => ({ ip: '0.0.0.0' })) }),
  'source ranges in an old form': (size) => ranged(many(size, (at) => `${mapped(at)}/120`)),
  'source ranges of the other family': (size) => ranged(many(size, prefix6)),
  'source ranges that cannot be read': (size) => ranged(many(size, () => 'x')),
  'ports of SCTP of a Service': (size) => service('shop/web', { ports: named(size).map((port) => ({ ...port, protocol: 'SCTP' })) }),
  'source ranges': (size) => service('shop/web', { type: 'LoadBalancer', spec: { loadBalancerSourceRanges: many(size, prefix) } }),
  'endpoints of a slice': (size) => slice('shop/web-1', { ports: [{ port: 80 }], endpoints: many(size, address) }),
  'endpoints in an old form': (size) => of4(many(size, mapped)),
  'endpoints that are refused': (size) => of4(many(size, () => '0.0.0.0')),
  'addresses of a node in an old form': (size) => node('n1', { addresses: many(size, mapped) }),
  'internal addresses of IPv6 and external ones of IPv4 of a node': (size) => addressed(size),
  'addresses of a node that are refused': (size) => node('n1', { addresses: many(size, () => '0.0.0.0') }),
  'ports of a slice': (size) => slice('shop/web-1', { ports: named(size), endpoints: ['10.0.0.1'] }),
}

describe('No step of reading an object takes 100 ms, however much it has of', () => {
  test.each(Object.entries(LONG))('%s', { timeout: 120_000 }, async (what, of) => {
    const text = JSON.stringify(of(sizeOf(of)))
    expect(text.length).toBeGreaterThan(0.9 * LONGEST)
    await withinBestOfThree(MOST_MS, () => {
      const { all, longest } = stepsOf(reading(JSON.parse(text)))
      if (process.env['SLICES'] !== undefined) console.log(`${what}: ${all.toFixed(0)} ms, the longest step ${longest.toFixed(0)}`)
      return Promise.resolve(longest)
    })
  })
})

/** As many as there is room for. */
function sizeOf(of: (size: number) => Manifest): number {
  const [few = 0, more = 0] = [1000, 2000].map((size) => JSON.stringify(of(size)).length)
  return Math.floor((1000 * LONGEST) / (more - few))
}

function reading(value: unknown): Sliced<unknown> {
  const identified = identify(value)
  if (identified.kind !== 'ours') throw new Error('not ours')
  return parseInSlices(value, identified.ref, createInternPool())
}
