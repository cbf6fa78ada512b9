// SPDX-License-Identifier: Apache-2.0
/** The generated pods and policies: the same every time, and what the product reads without complaint. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { isPolicyKind } from '#lib/model/kinds.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import { Store } from '#lib/store/store.ts'
import { addPod, frame, newPod, pod, podAddresses, policy, writePolicyCluster } from '../../bench/policy-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'netplane-policy-cluster-'))
afterAll(() => rmSync(folder, { recursive: true }))
const SIZE = { pods: 510, policies: 60 }

const one = written('one')

function written(name: string): string {
  const directory = join(folder, name)
  writePolicyCluster(directory, SIZE, {})
  return directory
}

function objects(directory: string): KubeObject[] {
  return listTree(directory).files.flatMap((file) => {
    const read = readManifest(file, readFileSync(join(directory, file), 'utf8'))
    return read.kind === 'ok' ? read.objects.map(({ value }) => objectOf(value)) : []
  })
}

function objectOf(value: unknown): KubeObject {
  const identified = identify(value)
  if (identified.kind !== 'ours') throw new Error(JSON.stringify(identified))
  const parsed = parseObject(value, identified.ref)
  if (parsed.kind !== 'ok' || parsed.rejected.length > 0) throw new Error(JSON.stringify(parsed))
  return parsed.value
}

test('the same size gives the same objects, all of them in order', () => {
  const found = objects(one)
  expect(found).toEqual(objects(written('two')))
  expect(found.filter(({ kind }) => kind === 'Pod')).toHaveLength(SIZE.pods)
  expect(found.filter(({ kind }) => isPolicyKind(kind))).toHaveLength(SIZE.policies)
})

test('500 combinations of labels, on each node all of them', () => {
  const pods = objects(one).flatMap((object) => (object.kind === 'Pod' ? [object] : []))
  const combination = ({ namespace, labels }: (typeof pods)[number]): string => `${namespace} ${JSON.stringify([...labels])}`
  expect(new Set(pods.map(combination)).size).toBe(500)
  expect(new Set(pods.filter(({ nodeName }) => nodeName === 'node-0').map(combination)).size).toBe(500)
})

test('no two pods share an address, new ones neither', () => {
  const pods = [...Array.from({ length: 10_000 }, (_, at) => at), ...Array.from({ length: 200 }, (_, at) => newPod(at))]
  expect(new Set(pods.flatMap(podAddresses)).size).toBe(2 * pods.length)
})

test('new pods are put beside the others, by turns on two nodes', () => {
  for (const at of [0, 1]) addPod(one, newPod(at))
  const added = objects(one).flatMap((object) => (object.kind === 'Pod' && /^app-1\d{4}$/.test(object.name) ? [object.nodeName] : []))
  expect(added).toEqual(['node-0', 'node-1'])
})

test('10,000 pods and 1,000 policies fit the tables: no namespace is closed', () => {
  const many = (count: number, make: (at: number) => unknown): KubeObject[] => Array.from({ length: count }, (_, at) => objectOf(make(at)))
  const store = new Store({ sources: ['test'] })
  const cluster = [...frame().map(objectOf), ...many(10_000, pod), ...many(1000, policy)]
  store.sink('test').apply(cluster.map((object) => ({ kind: 'upsert' as const, object })))
  store.sink('test').synced()
  const compiler = new PolicyCompiler()
  compiler.change(new PolicyFeed('node-0').all(store.snapshot))
  expect([compiler.noRoom, compiler.size.endpoints]).toEqual([[], 441])
})
