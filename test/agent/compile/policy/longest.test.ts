// SPDX-License-Identifier: Apache-2.0
/** One object never holds the event loop for long while what it means for many pods is compiled. Layer: test. */
import { describe, test } from 'vitest'
import { atOnce } from '#lib/base/async/slices.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { PolicyPipeline } from '#agent/compile/policy/policy-pipeline.ts'
import { kubernetesPolicy, model, namespace, node, pod, v3 } from '../../../support/build.ts'
import { withinBestOfThree } from '../../../support/steady/best-of.ts'
import { stepsOf } from '../../../support/steady/longest-step.ts'

const MOST_MS = 100

const many = <T>(size: number, one: (at: number) => T): T[] => Array.from({ length: size }, (_, at) => one(at))
const address = (at: number): string => `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`
const labels = (size: number): Record<string, string> => Object.fromEntries(many(size, (at) => [`l${at}`, 'v']))

const ports = [{ name: 'web', port: 80 }]

/** No two of them have the same labels. As many are on this node as a node has. */
const pods = (size: number): KubeObject[] =>
  many(size, (at) =>
    model(
      pod(`shop/p${at}`, { node: at < 110 ? 'n1' : 'n2', serviceAccount: 'web', ips: [address(at)], labels: { app: `a${at}` }, ports }),
    ),
  )

const without = (size: number): KubeObject =>
  model(
    kubernetesPolicy('shop/p', {
      ingress: [
        { from: many(size, (at) => ({ podSelector: { matchExpressions: [{ key: 'x', operator: 'NotIn', values: [`${at}`] }] } })) },
      ],
    }),
  )

/** By what comes, and goes again, beside so many pods. */
const LONG: Readonly<Record<string, { readonly beside: number; readonly object: KubeObject }>> = {
  'peers that each of 300 pods may be': { beside: 300, object: without(3000) },
  'peers of which there are too many for 300 pods': { beside: 300, object: without(8000) },
  'a selector of 20,000 parts that 2,000 pods are asked': {
    beside: 2000,
    object: model(
      v3('NetworkPolicy', 'shop/p', {
        types: ['Ingress'],
        ingress: [{ action: 'Allow', source: { selector: many(20_000, (at) => `a${at} contains "b"`).join(' || ') } }],
      }),
    ),
  },
  'a subject of 50,000 parts that 2,000 pods are asked': {
    beside: 2000,
    object: model(
      v3('NetworkPolicy', 'shop/p', { selector: many(50_000, (at) => `a${at} contains "b"`).join(' || '), types: ['Ingress'] }),
    ),
  },
  'names of ports of the pods that a selector of 20,000 parts finds among 2,000': {
    beside: 2000,
    object: model(
      v3('NetworkPolicy', 'shop/p', {
        types: ['Egress'],
        egress: [
          {
            action: 'Allow',
            protocol: 'TCP',
            destination: { selector: many(20_000, (at) => `a${at} contains "b"`).join(' || '), ports: ['web', 'dns', 'ssh'] },
          },
        ],
      }),
    ),
  },
  'labels of the namespace of 500 pods': { beside: 500, object: model(namespace('shop', labels(30_000))) },
  'labels of the account of 500 pods': {
    beside: 500,
    object: model({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'shop', name: 'web', labels: labels(30_000) } }),
  },
  'prefixes of a set': {
    beside: 300,
    object: model(v3('NetworkSet', 'shop/s', { nets: many(65_536, (at) => `172.16.${at >> 8}.${at & 255}`) })),
  },
}

describe('No step of compiling takes 100 ms for', () => {
  test.each(Object.entries(LONG))('%s', { timeout: 120_000 }, async (what, { beside, object }) => {
    await withinBestOfThree(MOST_MS, () => {
      const store = new Store({ sources: ['test'] })
      const sink = store.sink('test')
      sink.apply([model(node('n1', { addresses: ['192.0.2.1'] })), ...pods(beside)].map((one) => ({ kind: 'upsert', object: one })))
      sink.synced()
      const pipeline = new PolicyPipeline('n1')
      atOnce(pipeline.all(store.snapshot))
      store.takeChanges()
      sink.apply([{ kind: 'upsert', object }])
      const came = stepsOf(pipeline.changes(store.takeChanges(), store.snapshot))
      sink.apply([{ kind: 'delete', ref: object }])
      const went = stepsOf(pipeline.changes(store.takeChanges(), store.snapshot))
      if (process.env['SLICES'] !== undefined)
        console.log(`${what}: ${JSON.stringify([came, went].map(({ all, longest }) => [all, longest].map(Math.round)))}`)
      return Promise.resolve(Math.max(came.longest, went.longest))
    })
  })
})
