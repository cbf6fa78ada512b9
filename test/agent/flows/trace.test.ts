// SPDX-License-Identifier: Apache-2.0
/** All that rules said of a flow, from the rule that decided. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import type { PolicyHit } from '#lib/flows/flow.ts'
import type { Pod } from '#lib/model/pod.ts'
import { Ends } from '#agent/flows/ends.ts'
import { Tracer, type TraceQuery } from '#agent/flows/trace.ts'
import { kubernetesPolicy, node, pod, snapshotOf, v3, type Manifest } from '../../support/build.ts'

const [CLIENT, SERVER] = ['10.1.0.1', '10.1.0.2']
const BASE: readonly Manifest[] = [
  node('n1', { addresses: ['192.0.2.1'] }),
  pod('shop/web', { node: 'n1', ips: [CLIENT], labels: { app: 'web' } }),
  pod('shop/db', { node: 'n1', ips: [SERVER], labels: { app: 'db' } }),
]
const TIER = v3('Tier', 'security', { order: 10, defaultAction: 'Pass' })

function global(name: string, spec: Manifest): Manifest {
  return v3('GlobalNetworkPolicy', name, { tier: 'security', selector: 'app == "db"', types: ['Ingress'], ...spec })
}

/** "Pass GlobalNetworkPolicy security/-/first 0; Allow …" of what comes to the database's port. */
function hits(manifests: readonly Manifest[], of: Partial<TraceQuery> & { readonly port?: number }): string {
  const world = snapshotOf([...BASE, ...manifests])
  const ends = new Ends('n1')
  ends.note(world, undefined)
  const packet = { src: parseAddr(CLIENT), dst: parseAddr(SERVER), protocol: 6, sport: 40_000, dport: of.port ?? 5432, icmp: undefined }
  const query = {
    of: podNamed(world.pods, 'shop/db'),
    direction: 'ingress',
    packet,
    view: 'real',
    rule: undefined,
    action: 'Allow',
  } as const
  return new Tracer(world, ends)
    .hits({ ...query, ...of })
    .map(text)
    .join('; ')
}

function podNamed(pods: ReadonlyMap<string, Pod>, name: string): Pod {
  const found = pods.get(name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

function text({ kind, tier, namespace, name, action, rule, trigger }: PolicyHit): string {
  const for_ = trigger === undefined ? '' : ` for ${trigger.kind} ${trigger.name}`
  return `${action} ${kind} ${tier}/${namespace}/${name} ${rule}${for_}`
}

test('a pod that no policy selects is under the profile of its namespace', () => {
  expect(hits([], {})).toBe('Allow Profile //kns.shop 0')
})

test('a rule that passes stands before the one that decides', () => {
  const first = global('first', {
    ingress: [
      { action: 'Deny', protocol: 'UDP' },
      { action: 'Pass', protocol: 'TCP' },
    ],
  })
  const db = kubernetesPolicy('shop/db', { ingress: [{}] })
  expect(hits([TIER, first, db], { rule: 'KubernetesNetworkPolicy/shop/db ingress 0' })).toBe(
    'Pass GlobalNetworkPolicy security//first 1; Allow NetworkPolicy default/shop/db 0',
  )
})

test('a tier whose end passes stands there, with its last policy', () => {
  const policies = ['first', 'second'].map((name, order) => global(name, { order, ingress: [{ action: 'Deny', protocol: 'UDP' }] }))
  expect(hits([TIER, ...policies], { rule: 'Profile/kns.shop ingress 0' })).toBe(
    'Pass EndOfTier security// -1 for GlobalNetworkPolicy second; Allow Profile //kns.shop 0',
  )
})

test('what the end of a tier denies has the policy for which it is asked', () => {
  const db = kubernetesPolicy('shop/db', { ingress: [{ ports: [{ port: 80 }] }] })
  expect(hits([db], { rule: 'Tier/default ingress end', action: 'Deny' })).toBe('Deny EndOfTier default// -1 for NetworkPolicy db')
})

test('with staged policies in force a staged rule says itself what it would do, and the first policy is the trigger', () => {
  const staged = v3('StagedNetworkPolicy', 'shop/plan', {
    order: 1,
    selector: 'app == "db"',
    types: ['Ingress'],
    ingress: [{ action: 'Deny' }],
  })
  const asked = { view: 'staged', action: undefined } as const
  expect(hits([staged], { ...asked, rule: 'StagedNetworkPolicy/shop/plan ingress 0' })).toBe('Deny StagedNetworkPolicy default/shop/plan 0')
  const db = kubernetesPolicy('shop/db', { ingress: [{}] })
  expect(hits([staged, db], { ...asked, rule: 'Tier/default ingress end' })).toBe(
    'Deny EndOfTier default// -1 for StagedNetworkPolicy plan',
  )
  expect(hits([staged], { rule: undefined })).toBe('Allow Profile //kns.shop 0')
})

test('a rule of a policy that is gone by now keeps its name and what became of the packet', () => {
  expect(hits([], { rule: 'NetworkPolicy/shop/old ingress 2', action: 'Deny' })).toBe('Deny CalicoNetworkPolicy /shop/old 2')
})

test('rules of a device that neither end has are told by the rule alone', () => {
  const rule = 'GlobalNetworkPolicy/edge ingress 0'
  expect(hits([TIER, global('edge', { ingress: [{ action: 'Deny' }] })], { of: undefined, rule, action: 'Deny' })).toBe(
    'Deny GlobalNetworkPolicy security//edge 0',
  )
})
