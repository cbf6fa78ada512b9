// SPDX-License-Identifier: Apache-2.0
/** The store: changes, order, sources, indexes. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nameKey, refText } from '#lib/model/ref.ts'
import type { KubeObject, ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import type { SourceEvent } from '#lib/store/source.ts'
import { Store } from '#lib/store/store.ts'
import { felixConfiguration, kubernetesPolicy, model, namespace, node, pod, service, slice, storeOf, v3 } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

const put = (manifest: Manifest): SourceEvent => ({ kind: 'upsert', object: model(manifest) })
const drop = (manifest: Manifest): SourceEvent => {
  const { kind, namespace: ns, name } = model(manifest)
  return { kind: 'delete', ref: { kind, namespace: ns, name } }
}

function show(changes: readonly ObjectChange[]): string[] {
  return changes
    .map(({ before, after }) => `${before === undefined ? '+' : after === undefined ? '-' : '~'}${refText(after ?? before ?? never())}`)
    .sort()
}

function never(): never {
  throw new Error('a change without before and after')
}

describe('changes', () => {
  test('are those since they were last taken, each object once', () => {
    const store = storeOf([service('a'), service('b'), node('n1')])
    expect(show(store.takeChanges())).toEqual(['+Node/n1', '+Service/default/a', '+Service/default/b'])
    expect(store.takeChanges()).toEqual([])
    const sink = store.sink('test')
    sink.apply([
      put(service('a', { ports: [{ port: 81 }] })),
      drop(service('b')),
      put(service('c')),
      put(service('a', { ports: [{ port: 82 }] })),
    ])
    const changes = store.takeChanges()
    expect(show(changes)).toEqual(['+Service/default/c', '-Service/default/b', '~Service/default/a'])
    const changed = changes.find(({ after }) => after?.name === 'a')
    expect(changed).toMatchObject({ before: { ports: [{ port: 80 }] }, after: { ports: [{ port: 82 }] } })
  })

  test('that come while the snapshot is held wait, in their order, and are announced when it is let go of', () => {
    let told = 0
    const store = new Store({ sources: ['test'], onChange: () => told++ })
    const sink = store.sink('test')
    sink.apply([put(service('a')), put(node('n1'))])
    sink.synced()
    store.takeChanges()
    const { revision } = store.snapshot
    const held = store.hold()
    sink.apply([put(service('b')), drop(node('n1'))])
    sink.apply([drop(service('b')), put(service('c'))])
    expect([[...store.snapshot.services.keys()], store.snapshot.revision, told]).toEqual([['default/a'], revision, 1])
    expect(() => store.hold()).toThrow('held already')
    held[Symbol.dispose]()
    expect([[...store.snapshot.services.keys()], told]).toEqual([['default/a', 'default/c'], 2])
    expect(show(store.takeChanges())).toEqual(['+Service/default/c', '-Node/n1'])
    store.hold()[Symbol.dispose]()
  })

  test('that lead back are none', () => {
    const store = storeOf([service('a')])
    store.takeChanges()
    const revision = store.snapshot.revision
    const sink = store.sink('test')
    sink.apply([put(service('a'))])
    expect(store.snapshot.revision).toBe(revision)
    sink.apply([drop(service('a')), put(service('b')), drop(service('b')), put(service('a'))])
    expect(store.takeChanges()).toEqual([])
    expect(store.snapshot.revision).toBeGreaterThan(revision)
  })

  test('are announced once until taken, and not before the store is synced', () => {
    let told = 0
    const store = new Store({ sources: ['test'], onChange: () => told++ })
    const sink = store.sink('test')
    sink.apply([put(service('a'))])
    expect([told, store.synced]).toEqual([0, false])
    sink.synced()
    expect([told, store.synced]).toEqual([1, true])
    sink.apply([put(service('b'))])
    expect(told).toBe(1)
    store.takeChanges()
    sink.apply([put(service('b'))])
    expect(told).toBe(1)
    sink.apply([drop(service('b')), drop(service('unknown'))])
    expect(told).toBe(2)
  })
})

describe('several sources', () => {
  test('all have to be synced', () => {
    const store = new Store({ sources: ['one', 'two'] })
    store.sink('two').synced()
    expect(store.synced).toBe(false)
    store.sink('one').synced()
    expect(store.synced).toBe(true)
  })

  test('the earlier one’s object is taken, whichever came first', () => {
    const store = new Store({ sources: ['one', 'two'] })
    const portOf = (): number | undefined => store.snapshot.services.get('default/a')?.ports[0]?.port
    store.sink('two').apply([put(service('a', { ports: [{ port: 2 }] }))])
    expect(portOf()).toBe(2)
    store.sink('one').apply([put(service('a', { ports: [{ port: 1 }] }))])
    store.sink('two').apply([put(service('a', { ports: [{ port: 3 }] }))])
    expect(portOf()).toBe(1)
    store.sink('one').apply([drop(service('a'))])
    expect(portOf()).toBe(3)
    store.sink('two').apply([drop(service('a'))])
    expect(portOf()).toBeUndefined()
  })

  test('pass their status on', () => {
    const said: string[] = []
    const store = new Store({ sources: ['one'], onStatus: (name, status) => said.push(`${name} ${status.unavailable?.reason ?? 'ok'}`) })
    store.sink('one').status({ unavailable: { reason: 'gone', since: 1 }, problems: [] })
    expect(said).toEqual(['one gone'])
    expect(() => store.sink('other').apply([put(service('a'))])).toThrow('unknown source other')
  })
})

describe('the snapshot', () => {
  test('finds by what belongs together', () => {
    const { snapshot } = storeOf([
      slice('web-b', { endpoints: [{ addr: '10.0.0.1', node: 'n1' }] }),
      slice('web-a', { endpoints: [{ addr: '10.0.0.2', node: 'n2' }] }),
      slice('other/web-a', { endpoints: [{ addr: '10.0.0.3', node: 'n1' }] }),
      slice('lost-a', { labels: { 'kubernetes.io/service-name': '' } }),
      pod('b', { node: 'n1' }),
      pod('a', { node: 'n1' }),
      pod('c'),
      namespace('default', { team: 'x' }),
      felixConfiguration('default', {}),
    ])
    expect(snapshot.slicesOf('default/web').map(({ name }) => name)).toEqual(['web-a', 'web-b'])
    expect(snapshot.slicesOf('default/none')).toEqual([])
    expect([...snapshot.podsOn('n1')].map(({ name }) => name)).toEqual(['a', 'b'])
    expect([...snapshot.servicesOn(new Set(['n1']))].sort()).toEqual(['default/web', 'other/web'])
    expect([...snapshot.servicesOn(new Set(['n2', 'n3']))]).toEqual(['default/web'])
    expect([snapshot.namespaces.get('default')?.labels.get('team'), snapshot.felixConfigurations.size]).toEqual(['x', 1])
  })

  test('holds policies of all kinds, even of one name, and what belongs to them', () => {
    const store = storeOf([
      kubernetesPolicy('shop/p'),
      v3('NetworkPolicy', 'shop/p'),
      v3('GlobalNetworkPolicy', 'p'),
      v3('Tier', 'ops'),
      v3('NetworkSet', 'shop/s'),
      v3('GlobalNetworkSet', 's'),
      v3('Profile', 'kns.shop'),
      v3('HostEndpoint', 'h', { node: 'n1', interfaceName: '*' }),
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'shop', name: 'front' } },
    ])
    const { policies, tiers, networkSets, profiles, hostEndpoints, serviceAccounts } = store.snapshot
    const keys = [policies, tiers, networkSets, profiles, hostEndpoints, serviceAccounts].map((map) => [...map.keys()].sort())
    expect(keys).toEqual([
      ['GlobalNetworkPolicy/p', 'KubernetesNetworkPolicy/shop/p', 'NetworkPolicy/shop/p'],
      ['ops'],
      ['s', 'shop/s'],
      ['kns.shop'],
      ['h'],
      ['shop/front'],
    ])
    store.takeChanges()
    store.sink('test').apply([drop(v3('NetworkPolicy', 'shop/p')), put(kubernetesPolicy('shop/p', { policyTypes: ['Egress'] }))])
    expect(show(store.takeChanges())).toEqual(['-NetworkPolicy/shop/p', '~KubernetesNetworkPolicy/shop/p'])
    expect([...policies.keys()].sort()).toEqual(['GlobalNetworkPolicy/p', 'KubernetesNetworkPolicy/shop/p'])
  })

  test('knows the slices of services that are not ours to serve, for rules that only ask for their endpoints', () => {
    const { snapshot } = storeOf([slice('web-a'), slice('web-b', { labels: { 'service.kubernetes.io/headless': '' } })])
    expect(snapshot.slicesOf('default/web').map(({ name }) => name)).toEqual(['web-a'])
    expect(snapshot.allSlicesOf('default/web').map(({ name }) => name)).toEqual(['web-a', 'web-b'])
  })

  test('follows an object from group to group', () => {
    const store = storeOf([slice('web-a', {}), pod('a', { node: 'n1' })])
    const sink = store.sink('test')
    sink.apply([put(slice('web-a', { service: 'shop' })), put(pod('a', { node: 'n2' }))])
    const { snapshot } = store
    expect([snapshot.slicesOf('default/web').length, snapshot.slicesOf('default/shop').length]).toEqual([0, 1])
    expect([[...snapshot.podsOn('n1')].length, [...snapshot.podsOn('n2')].length]).toEqual([0, 1])
    sink.apply([drop(slice('web-a')), drop(pod('a'))])
    expect([snapshot.slicesOf('default/shop').length, [...snapshot.podsOn('n2')].length]).toEqual([0, 0])
  })
})

test('the order of events of different objects does not matter, and changes lead from one state to the next', () => {
  const objects = [
    service('a'),
    service('a', { ports: [{ port: 81 }] }),
    service('b'),
    slice('a-1', { endpoints: ['10.0.0.1'] }),
    slice('a-1', { service: 'b' }),
    slice('a-2'),
    pod('p', { node: 'n1' }),
    pod('p', { node: 'n2' }),
    node('n1'),
  ]
  const event = fc
    .record({ manifest: fc.constantFrom(...objects), gone: fc.boolean() })
    .map(({ manifest, gone }) => (gone ? drop(manifest) : put(manifest)))
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 4 }), (events, takes) => {
      const store = new Store({ sources: ['test'] })
      const replayed = new Map<string, KubeObject>()
      for (const [at, one] of events.entries()) {
        store.sink('test').apply([one])
        if (takes.includes(at)) replay(replayed, store.takeChanges())
      }
      replay(replayed, store.takeChanges())
      const last = new Map(events.map((one) => [refText(one.kind === 'upsert' ? one.object : one.ref), one]))
      const fresh = new Store({ sources: ['test'] })
      fresh.sink('test').apply([...last.values()].reverse())
      expect(state(store.snapshot)).toEqual(state(fresh.snapshot))
      expect([...replayed.keys()].sort()).toEqual(
        [...last]
          .filter(([, one]) => one.kind === 'upsert')
          .map(([ref]) => ref)
          .sort(),
      )
    }),
  )
})

function replay(state: Map<string, KubeObject>, changes: readonly ObjectChange[]): void {
  for (const { before, after } of changes) {
    expect(state.get(refText(after ?? before ?? never()))).toEqual(before)
    if (after === undefined) state.delete(refText(before ?? never()))
    else state.set(refText(after), after)
  }
}

function state(snapshot: Snapshot): unknown {
  const keys = ['default/a', 'default/b']
  return {
    services: [...snapshot.services].sort(([a], [b]) => (a < b ? -1 : 1)),
    pods: [...snapshot.pods],
    nodes: [...snapshot.nodes],
    slices: keys.map((key) => snapshot.slicesOf(key)),
    on: ['n1', 'n2'].map((name) => [...snapshot.podsOn(name)].map(nameKey)),
  }
}
