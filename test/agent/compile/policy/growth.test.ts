// SPDX-License-Identifier: Apache-2.0
/** What an object costs grows with its size and not with the square of it: each field of each kind that policy is made
 * of, four times as long. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { policyText } from '#lib/model/policy-text.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import type { Sink } from '#lib/store/source.ts'
import { Store } from '#lib/store/store.ts'
import { PolicyPipeline } from '#agent/compile/policy/policy-pipeline.ts'
import { clusterPolicy, kubernetesPolicy, model, namespace, node, pod, slice, v3 } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'
import { oneIn } from '../../../support/steady/matrix.ts'
import { FIELDS, PEERS_AND_PORTS } from './growing-fields.ts'

const ON = { node: 'n1', serviceAccount: 'web' }
const WORLD: readonly KubeObject[] = [
  node('n1', { addresses: ['192.0.2.1'] }),
  namespace('shop', { team: 'x' }),
  pod('shop/web', { ...ON, ips: ['10.0.0.1'], labels: { app: 'web', k0: 'v0' }, ports: [{ name: 'p0', port: 8080 }] }),
  pod('shop/db', { ...ON, ips: ['10.0.0.2'], labels: { app: 'db', k1: 'v1' }, ports: [{ name: 'p1', port: 8081 }] }),
  pod('shop/far', { node: 'n2', ips: ['10.0.0.3'], labels: { app: 'far' } }),
  v3('HostEndpoint', 'eth0', { node: 'n1', interfaceName: 'eth0', expectedIPs: ['192.0.2.1'] }),
  kubernetesPolicy('shop/names', { ingress: [{ ports: [{ port: 'p0' }, { port: 'p1' }] }], egress: [{ ports: [{ port: 'p1' }] }] }),
  clusterPolicy('near', { ingress: [{ action: 'Accept', from: [{ namespaces: { matchLabels: { team: 'x' } } }] }] }),
].map(model)

const PACKET = { src: parseAddr('10.0.0.3'), dst: parseAddr('10.0.0.1'), protocol: 6, sport: 40_000, dport: 443, icmp: undefined }

/** A store of these objects. */
function storeOf(objects: readonly KubeObject[]): { readonly store: Store; readonly sink: Sink } {
  const store = new Store({ sources: ['test'] })
  const sink = store.sink('test')
  sink.apply(objects.map((object) => ({ kind: 'upsert', object })))
  sink.synced()
  return { store, sink }
}

/** The ms that it takes to read, to put beside the others, to explain, to remove, and to start with. */
function costOf(manifest: Manifest): number {
  const text = JSON.stringify(manifest)
  const { store, sink } = storeOf(WORLD)
  const pipeline = new PolicyPipeline('n1')
  atOnce(pipeline.all(store.snapshot))
  store.takeChanges()
  return cpuMs(() => {
    const object = read(text)
    sink.apply([{ kind: 'upsert', object }])
    atOnce(pipeline.changes(store.takeChanges(), store.snapshot))
    atOnce(new PolicyPipeline('n1').all(store.snapshot))
    if ('subject' in object) policyText(object)
    explain(store)
    sink.apply([{ kind: 'delete', ref: object }])
    atOnce(pipeline.changes(store.takeChanges(), store.snapshot))
  })
}

/** The ms that a node's compiler takes for it, from nothing. */
function compileCostOf(manifest: Manifest): number {
  const { store } = storeOf([...WORLD, read(JSON.stringify(manifest))])
  return cpuMs(() => atOnce(new PolicyPipeline('n1').all(store.snapshot)))
}

/** Of this thread. */
function cpuMs(act: () => void): number {
  const { user, system } = process.threadCpuUsage()
  act()
  const after = process.threadCpuUsage()
  return (after.user + after.system - user - system) / 1000
}

function read(text: string): KubeObject {
  const raw: unknown = JSON.parse(text)
  const identified = identify(raw)
  if (identified.kind !== 'ours') throw new Error(JSON.stringify(identified))
  const parsed = parseObject(raw, identified.ref)
  if (parsed.kind === 'rejected') throw new Error(JSON.stringify(parsed.rejected.slice(0, 3)))
  return parsed.value
}

function explain({ snapshot }: Store): void {
  const evaluator = new Evaluator(snapshot)
  for (const [own, direction] of [['shop/web', 'ingress'] as const, ['shop/far', 'egress'] as const]) {
    const asked = snapshot.pods.get(own)
    if (asked !== undefined) evaluator.pod(asked, PACKET, { direction })
  }
}

/** A square would be sixteen times. What is as quick as this is no matter. */
const MOST_TIMES = 11
const QUICK_MS = 40

describe.each(Object.entries(FIELDS))('%s', (_kind, fields) => {
  // rules, peers and selectors are read and compiled by the same code in each kind
  test.each(oneIn(3, Object.entries(fields)))('%s', { timeout: 120_000 }, (what, { of, size = 600 }) => {
    expectNoSquare(what, { size, costAt: (length) => costOf(of(length)) })
  })
})

test('a rule of many peers and many ports fills many blocks, of which each costs the same', { timeout: 120_000 }, () => {
  // a block's part of the square is small: all of it is six to nine times as much
  expectNoSquare('blocks', { size: 4000, costAt: (size) => compileCostOf(PEERS_AND_PORTS.of(size)), mostTimes: 6 })
})

test('a policy may name as many ports as one pod has', { timeout: 120_000 }, () => {
  const names = (size: number): string[] => Array.from({ length: size }, (_, at) => `p${at}`)
  const costAt = (size: number): number => {
    const ports = names(size).map((name, at) => ({ name, port: 1 + at }))
    const { store } = storeOf([
      ...WORLD,
      model(pod('shop/many', { ...ON, ips: ['10.0.0.9'], ports })),
      model(kubernetesPolicy('shop/p', { egress: [{ to: [{ podSelector: {} }], ports: names(size).map((port) => ({ port })) }] })),
    ])
    return cpuMs(() => atOnce(new PolicyPipeline('n1').all(store.snapshot)))
  }
  expectNoSquare('names of ports', { size: 4000, costAt, mostTimes: 6 })
})

test('a service that a rule speaks of may have many ports', { timeout: 120_000 }, () => {
  const endpoints = Array.from({ length: 100 }, (_, at) => ({ addr: `10.1.0.${at}` }))
  const costAt = (size: number): number => {
    const ports = Array.from({ length: size }, (_, at) => ({ name: `p${at}`, port: 1 + at }))
    const rule = { action: 'Allow', destination: { services: { name: 'web' } } }
    const { store } = storeOf([
      ...WORLD,
      model(slice('shop/web-1', { service: 'web', ports, endpoints })),
      model(v3('NetworkPolicy', 'shop/p', { types: ['Egress'], egress: [rule] })),
    ])
    return cpuMs(() => atOnce(new PolicyPipeline('n1').all(store.snapshot)))
  }
  expectNoSquare('ports of a service', { size: 1000, costAt, mostTimes: 8 })
})

test('a policy may name many ports of the pods that a long selector finds', { timeout: 120_000 }, () => {
  const costAt = (size: number): number => {
    const parts = Array.from({ length: size }, (_, at) => `a${at} == "x"`)
    const ports = Array.from({ length: size }, (_, at) => `p${at}`)
    const rule = { action: 'Allow', protocol: 'TCP', destination: { selector: `app == "db" || ${parts.join(' || ')}`, ports } }
    const named = ports.map((name, at) => ({ name, port: 1 + at }))
    const { store } = storeOf([
      ...WORLD,
      model(pod('shop/many', { ...ON, ips: ['10.0.0.9'], labels: { app: 'db' }, ports: named })),
      model(v3('NetworkPolicy', 'shop/p', { types: ['Egress'], egress: [rule] })),
    ])
    return cpuMs(() => atOnce(new PolicyPipeline('n1').all(store.snapshot)))
  }
  expectNoSquare('names of ports, and parts of a selector', { size: 1000, costAt, mostTimes: 6 })
})

test('a name of a port may mean another one to each pod, and the rules that it makes are no more than count', { timeout: 120_000 }, () => {
  const peers = Array.from({ length: 4000 }, (_, at) => ({ ipBlock: { cidr: `10.${at >> 8}.${at & 255}.0/24` } }))
  const costAt = (size: number): number => {
    const pods = Array.from({ length: size }, (_, at) =>
      model(pod(`shop/a${at}`, { ...ON, ips: [`10.0.1.${at}`], labels: { app: 'web' }, ports: [{ name: 'web', port: 8000 + at }] })),
    )
    const policy = model(kubernetesPolicy('shop/p', { ingress: [{ from: peers, ports: [{ port: 'web' }] }] }))
    const { store } = storeOf([...WORLD, ...pods, policy])
    return cpuMs(() => {
      const pipeline = new PolicyPipeline('n1')
      atOnce(pipeline.all(store.snapshot))
      expect(pipeline.noRoom).toMatchObject([{ namespace: 'shop', table: 'rules' }])
    })
  }
  expectNoSquare('pods with a port of that name', { size: 25, costAt, mostTimes: 2.5 })
})

test('a pod may have many ports, and many policies', { timeout: 120_000 }, () => {
  const costAt = (size: number): number => {
    const ports = Array.from({ length: size }, (_, at) => ({ name: `p${at}`, port: 1 + at }))
    const policies = Array.from({ length: size >> 4 }, (_, at) => model(kubernetesPolicy(`shop/p${at}`, { ingress: [] })))
    const { store } = storeOf([...WORLD, model(pod('shop/many', { ...ON, ips: ['10.0.0.9'], ports })), ...policies])
    return cpuMs(() => atOnce(new PolicyPipeline('n1').all(store.snapshot)))
  }
  expectNoSquare('ports of a pod, and policies', { size: 4000, costAt, mostTimes: 8 })
})

test('many rules of a policy may speak of a service of many endpoints, also where they are explained', { timeout: 120_000 }, () => {
  const costAt = (size: number): number => {
    const endpoints = Array.from({ length: size }, (_, at) => ({ addr: `10.1.${at >> 8}.${at & 255}` }))
    const egress = Array.from({ length: size }, () => ({ action: 'Allow', destination: { services: { name: 'web' } } }))
    const { store } = storeOf([
      ...WORLD,
      model(slice('shop/web-1', { service: 'web', ports: [{ port: 80 }], endpoints })),
      model(v3('NetworkPolicy', 'shop/p', { types: ['Egress'], egress })),
    ])
    return cpuMs(() => {
      explain(store)
    })
  }
  expectNoSquare('endpoints of a service, and rules', { size: 2000, costAt, mostTimes: 8 })
})

interface Growing {
  readonly size: number
  /** ms */
  readonly costAt: (size: number) => number
  readonly mostTimes?: number
}

/** Best of three: so many times as much for four times the size. */
function expectNoSquare(what: string, { size, costAt, mostTimes = MOST_TIMES }: Growing): void {
  const tries: string[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const [once, fourTimes] = [costAt(size), costAt(4 * size)]
    tries.push(`${once.toFixed(0)} ms, then ${fourTimes.toFixed(0)} ms`)
    if (fourTimes < Math.max(QUICK_MS, mostTimes * once)) {
      if (process.env['GROWTH'] !== undefined) console.log(`${what}: ${tries.join('; ')}`)
      return
    }
  }
  expect(tries).toEqual(`less than ${mostTimes} times as much`)
}
