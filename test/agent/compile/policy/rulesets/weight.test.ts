// SPDX-License-Identifier: Apache-2.0
/** What a policy asks of prefixes within one another multiplies: it is not made, and its namespace alone is closed.
 * Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { PolicyPipeline } from '#agent/compile/policy/policy-pipeline.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { kubernetesPolicy, pod, storeOf } from '../../../../support/build.ts'
import type { Manifest } from '../../../../support/build.ts'

const RULES = 8000
/** Each asks whether an address is in 10.0.0.0/9, and whether it is at one place within. */
const nested = (count: number): Manifest =>
  kubernetesPolicy('noisy/p', {
    ingress: [
      {
        from: Array.from({ length: count }, (_, at) => ({
          ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/9', `10.${at >> 8}.${at & 255}.0/24`] },
        })),
      },
    ],
  })
const WORLD = [
  pod('noisy/a', { node: 'n1', ips: ['192.0.2.1'] }),
  pod('quiet/b', { node: 'n1', ips: ['192.0.2.2'] }),
  kubernetesPolicy('quiet/p', { ingress: [{ from: [{ ipBlock: { cidr: '10.128.0.0/9' } }] }] }),
]

test('a policy whose prefixes are within one another closes its namespace before it takes the memory', () => {
  const store = storeOf(WORLD)
  const pipeline = new PolicyPipeline('n1')
  const tables = new PolicyTables()
  tables.apply(atOnce(pipeline.all(store.snapshot)))
  store.takeChanges()
  const put = (manifest: Manifest): void => {
    const changed = storeOf([manifest])
    store.sink('test').apply([...changed.snapshot.policies.values()].map((object) => ({ kind: 'upsert', object })))
    tables.apply(atOnce(pipeline.changes(store.takeChanges(), store.snapshot)))
  }
  const verdict = (dst: string, src: string): string => {
    const packet = { src: parseAddr(src), dst: parseAddr(dst), protocol: 6, sport: 40_000, dport: 80, icmp: undefined }
    return judgeByTables(tables, packet, { direction: 'ingress' }).action
  }
  const all = (): readonly string[] => [
    verdict('192.0.2.1', '10.200.0.1'),
    verdict('192.0.2.1', '10.1.0.1'),
    verdict('192.0.2.2', '10.200.0.1'),
    verdict('192.0.2.2', '10.1.0.1'),
  ]
  put(nested(100))
  expect([all(), pipeline.noRoom]).toEqual([['allow', 'deny', 'allow', 'deny'], []])
  const { user } = process.threadCpuUsage()
  put(nested(RULES))
  expect((process.threadCpuUsage().user - user) / 1000).toBeLessThan(3000)
  expect(pipeline.noRoom).toMatchObject([{ namespace: 'noisy', policies: ['KubernetesNetworkPolicy/noisy/p'] }])
  expect(all()).toEqual(['deny', 'deny', 'allow', 'deny'])
  expect(pipeline.size.identities).toBeLessThan(100)
  put(nested(10))
  expect([all(), pipeline.noRoom]).toEqual([['allow', 'deny', 'allow', 'deny'], []])
})

/** A world of two namespaces, each with a pod of its own; what the policies cost in ms, and whose are closed. */
function costOf(...policies: readonly Manifest[]): { readonly ms: number; readonly closed: readonly string[] } {
  const store = storeOf(WORLD)
  const pipeline = new PolicyPipeline('n1')
  atOnce(pipeline.all(store.snapshot))
  store.takeChanges()
  const changed = storeOf(policies)
  store.sink('test').apply([...changed.snapshot.policies.values()].map((object) => ({ kind: 'upsert', object })))
  const { user } = process.threadCpuUsage()
  atOnce(pipeline.changes(store.takeChanges(), store.snapshot))
  return { ms: (process.threadCpuUsage().user - user) / 1000, closed: pipeline.noRoom.map(({ namespace }) => namespace) }
}

test('two namespaces that ask the same do not go free', () => {
  const policy = nested(2400)
  expect(costOf(policy, { ...policy, metadata: { namespace: 'quiet', name: 'p' } }).closed).toEqual(['noisy', 'quiet'])
})

test('few questions about many prefixes within one another close their namespace as well', () => {
  const prefixes = Array.from({ length: 10_000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`)
  const from = Array.from({ length: 1000 }, (_, at) => ({
    ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/9', ...prefixes.slice(10 * at, 10 * at + 10)] },
  }))
  expect(costOf(kubernetesPolicy('noisy/p', { ingress: [{ from }] })).closed).toEqual(['noisy'])
})

test('a namespace of many prefixes side by side is not closed for one that asks about all of them', () => {
  const sides = Array.from({ length: 5000 }, (_, at) => ({ ipBlock: { cidr: `10.${at >> 8}.${at & 255}.0/24` } }))
  expect(costOf(kubernetesPolicy('quiet/p', { ingress: [{ from: sides }] }), nested(1100)).closed).toEqual(['noisy'])
})
