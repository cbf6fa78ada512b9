// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatCidr, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { FelixConfiguration } from '#lib/model/felix-configuration.ts'
import type { Node, NodeNetwork } from '#lib/model/node.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { DesiredState } from '#agent/run/desired-state.ts'

function nodeAt(name: string, number: number): Node {
  return {
    kind: 'Node',
    namespace: '',
    name,
    addresses: [parseAddr(`192.0.2.${number}`)],
    podCIDRs: [parseCidr(`10.1.${number}.0/24`)],
    zone: undefined,
    labels: new Map(),
    subnets: [],
  }
}

const self = nodeAt('n1', 1)
const node = nodeAt('n2', 2)
const said: NodeNetwork = {
  ...{ kind: 'NodeNetwork', namespace: '', name: 'n1', addresses: [parseAddr('192.0.2.9')] },
  ...{ podCIDRs: [], blocks: [], subnets: [], labels: new Map(), owner: undefined },
}

function felix(spec: FelixConfiguration['spec']): FelixConfiguration {
  return { kind: 'FelixConfiguration', namespace: '', name: 'default', spec }
}

function setup() {
  const told = { changes: 0 }
  const store = new Store({ sources: ['test'], onChange: () => told.changes++ })
  const configs: boolean[] = []
  const missing: (string | undefined)[] = []
  const later: (string | undefined)[] = []
  const conflicts: string[][] = []
  const wanted = new DesiredState({
    node: 'n1',
    store,
    onConfig: ({ config }) => configs.push(config.compile.connectTcp),
    onChanges: (changes) => later.push(...changes.map((change) => change.after?.name)),
    onConflicts: (all) => conflicts.push(all.map(({ rejected }) => rejectedText(rejected))),
    onNode: (why) => missing.push(why),
  })
  const sink = store.sink('test')
  const put = (object: KubeObject): void => {
    sink.apply([{ kind: 'upsert', object }])
  }
  const drop = ({ kind, namespace, name }: KubeObject): void => {
    sink.apply([{ kind: 'delete', ref: { kind, namespace, name } }])
  }
  return { told, wanted, sink, configs, missing, later, conflicts, put, drop }
}

describe('what is wanted', () => {
  test('lets no policy cut the node off from its source, wherever that is at present', () => {
    const store = new Store({ sources: ['test'] })
    let net = parseCidr('203.0.113.1/32')
    const servers = () => [{ addr: net.addr, port: parsePort(6443) }]
    const wanted = new DesiredState({ node: 'n1', store, onConfig: () => undefined, servers })
    const sink = store.sink('test')
    sink.apply([{ kind: 'upsert', object: self }])
    sink.synced()
    const nets = () =>
      wanted
        .take(false)
        ?.fragments.flatMap(({ rows }) => rows)
        .flatMap((row) => (row.table === 'failsafes' && row.key.cidr.bits === 32 ? [formatCidr(row.key.cidr)] : []))
    const first = nets()
    expect(nets()).toBeUndefined()
    net = parseCidr('203.0.113.2/32')
    expect([first, nets()]).toEqual([['203.0.113.1/32'], ['203.0.113.2/32']])
  })

  test('says what changed since the first time', () => {
    const { wanted, sink, later, put } = setup()
    put(self)
    sink.synced()
    wanted.take(false)
    expect(later).toEqual([])
    put(node)
    wanted.take(false)
    expect(later).toEqual(['n2'])
  })

  test('is unknown until every source is synced, and that is reported as a change', () => {
    const { told, wanted, sink, put } = setup()
    put(self)
    put(node)
    expect([told.changes, wanted.take(false)]).toEqual([0, undefined])
    sink.synced()
    expect(told.changes).toBe(1)
    const first = wanted.take(false)
    expect(first?.complete).toBe(true)
    expect(first?.fragments.map((fragment) => fragment.owner)).toEqual(['Node/n1', 'Node/n2'])
    expect(first?.node?.routes).toHaveLength(1)
  })

  test('is only what changed afterwards, and everything when that is asked for', () => {
    const { wanted, sink, put } = setup()
    put(self)
    sink.synced()
    wanted.take(false)
    expect(wanted.take(false)).toBeUndefined()
    put(node)
    expect(wanted.take(false)).toMatchObject({ complete: false, fragments: [{ owner: 'Node/n2' }] })
    expect(wanted.take(true)?.complete).toBe(true)
  })

  test('names the objects that want a key of another, when that changes', () => {
    const { wanted, sink, conflicts, put, drop } = setup()
    const rival = { ...node, name: 'n3' }
    put(self)
    put(node)
    sink.synced()
    wanted.take(false)
    put(rival)
    wanted.take(false)
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    wanted.take(false)
    const one = 'Node n3: 192.0.2.2 already belongs to Node/n2'
    expect(conflicts).toEqual([[one]])
    drop(rival)
    wanted.take(false)
    expect(conflicts).toEqual([[one], []])
  })

  test('follows the configuration', () => {
    const { wanted, sink, put, configs } = setup()
    put(self)
    sink.synced()
    expect(wanted.take(false)?.node?.knobs.connectTcp).toBe(true)
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(wanted.take(false)?.node?.knobs.connectTcp).toBe(false)
    expect(configs).toEqual([true, false])
  })

  test('is unknown until there is a Node of this name, and its absence is logged once', () => {
    const { told, wanted, sink, put, missing, configs } = setup()
    put(node)
    sink.synced()
    expect([wanted.take(true), wanted.take(false)]).toEqual([undefined, undefined])
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(wanted.take(false)).toBeUndefined()
    // the configuration says where health is served, and that is needed now
    expect(configs).toEqual([true, false])
    expect(missing).toEqual(['there is no Node n1 in the sources'])
    put(self)
    expect(told.changes).toBe(3)
    const first = wanted.take(false)
    expect(first).toMatchObject({ complete: true, node: { host: { addresses: self.addresses }, knobs: { connectTcp: false } } })
    expect(first?.fragments.map((fragment) => fragment.owner)).toEqual(['Node/n1', 'Node/n2'])
    expect(missing).toEqual(['there is no Node n1 in the sources', undefined])
  })

  // its NodeNetwork is deleted after it
  test.each([[[]], [[said]]])('keeps the Node as it was last when that is deleted, with its NodeNetwork or without: %#', (others) => {
    const { wanted, sink, put, drop, missing } = setup()
    for (const other of others) put(other)
    put(self)
    sink.synced()
    const before = wanted.take(false)
    drop(self)
    const change = wanted.take(false)
    expect(change?.node).toBeUndefined()
    expect(change?.fragments.find((fragment) => fragment.owner === 'Node/n1')?.rows ?? []).toEqual(before?.fragments[0]?.rows)
    expect(wanted.take(true)).toEqual(before)
    put(node)
    expect(wanted.take(false)?.node?.host).toEqual(before?.node?.host)
    put(self)
    wanted.take(false)
    expect(missing).toEqual([undefined, 'there is no Node n1 in the sources: its last good state stays in force', undefined])
  })
})
