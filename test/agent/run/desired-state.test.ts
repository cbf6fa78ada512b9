// SPDX-License-Identifier: Apache-2.0
import { atOnce } from '#lib/base/async/slices.ts'
import { describe, expect, test } from 'vitest'
import { formatCidr, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { FelixConfiguration } from '#lib/model/felix-configuration.ts'
import type { Node, NodeNetwork } from '#lib/model/node.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { DesiredState, type DesiredStateOptions } from '#agent/run/desired-state.ts'

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

function setup(role: Pick<DesiredStateOptions, 'makesRoutes' | 'servesPods'> = {}) {
  const told = { changes: 0 }
  const store = new Store({ sources: ['test'], onChange: () => told.changes++ })
  const state = new DesiredState({ node: 'n1', store, ...role })
  const desired = () => atOnce(state.compile())?.compiled?.desired
  const sink = store.sink('test')
  const put = (object: KubeObject): void => {
    sink.apply([{ kind: 'upsert', object }])
  }
  const drop = ({ kind, namespace, name }: KubeObject): void => {
    sink.apply([{ kind: 'delete', ref: { kind, namespace, name } }])
  }
  return { told, state, desired, sink, put, drop }
}

describe('programs and maps', () => {
  test.each([
    ['our own plugin', { servesPods: true, makesRoutes: true }, true],
    ['another plugin', { servesPods: false, makesRoutes: false }, false],
  ])('are known before everything is compiled, and are those that it asks for, with %s', (_, role, overlay) => {
    const { state, desired, sink, put } = setup(role)
    put(self)
    put(node)
    put(felix({ bpfMapSizeConntrack: 4096, bpfExternalServiceMode: 'DSR', vxlanPort: 4790 }))
    expect(state.firstConfiguration(), 'no source has been read').toBeUndefined()
    sink.synced()
    const first = state.firstConfiguration()
    const asked = desired()?.node
    expect(first).toEqual({ knobs: asked?.knobs, mapSizes: asked?.mapSizes })
    expect(first?.knobs).toMatchObject({ dsr: true, tunnelPort: 4790, overlay })
    expect(state.firstConfiguration(), 'it has been compiled').toBeUndefined()
  })

  test('are not before the sources have this node', () => {
    const { state, sink, put } = setup()
    put(node)
    sink.synced()
    expect(state.firstConfiguration()).toBeUndefined()
  })
})

describe('what is wanted', () => {
  test('lets no policy cut the node off from its source, wherever that is at present', () => {
    const store = new Store({ sources: ['test'] })
    let net = parseCidr('203.0.113.1/32')
    const servers = () => [{ addr: net.addr, port: parsePort(6443) }]
    const state = new DesiredState({ node: 'n1', store, servers })
    const sink = store.sink('test')
    sink.apply([{ kind: 'upsert', object: self }])
    sink.synced()
    const nets = () =>
      atOnce(state.compile())
        ?.compiled?.desired.fragments.flatMap(({ rows }) => rows)
        .flatMap((row) => (row.table === 'failsafes' && row.key.cidr.bits === 32 ? [formatCidr(row.key.cidr)] : []))
    const first = nets()
    expect(nets()).toBeUndefined()
    net = parseCidr('203.0.113.2/32')
    expect([first, nets()]).toEqual([['203.0.113.1/32'], ['203.0.113.2/32']])
  })

  test('comes with what changed since the first time', () => {
    const { state, sink, put } = setup()
    put(self)
    sink.synced()
    expect(atOnce(state.compile())).toMatchObject({ objects: undefined, compiled: { desired: { complete: true } } })
    put(node)
    expect(atOnce(state.compile())?.objects?.map(({ after }) => after?.name)).toEqual(['n2'])
  })

  test('is unknown until every source is synced, and that is reported as a change', () => {
    const { told, state, desired, sink, put } = setup()
    put(self)
    put(node)
    expect([told.changes, atOnce(state.compile())]).toEqual([0, undefined])
    sink.synced()
    expect(told.changes).toBe(1)
    const first = desired()
    expect(first?.complete).toBe(true)
    expect(first?.fragments.map((fragment) => fragment.owner)).toEqual(['Node/n1', 'Node/n2'])
    expect(first?.node?.routes).toHaveLength(1)
  })

  test('is only what changed afterwards, and everything once when a resync is requested', () => {
    const { state, desired, sink, put } = setup()
    put(self)
    sink.synced()
    atOnce(state.compile())
    expect(atOnce(state.compile())).toBeUndefined()
    put(node)
    expect(desired()).toMatchObject({ complete: false, fragments: [{ owner: 'Node/n2' }] })
    state.requestResync()
    expect(desired()?.complete).toBe(true)
    expect(atOnce(state.compile())).toBeUndefined()
  })

  test('names the objects that want a key of another, when that changes', () => {
    const { state, sink, put, drop } = setup()
    const conflicts = () => atOnce(state.compile())?.compiled?.conflicts?.map(({ rejected }) => rejectedText(rejected))
    const rival = { ...node, name: 'n3' }
    put(self)
    put(node)
    sink.synced()
    expect(conflicts()).toBeUndefined()
    put(rival)
    expect(conflicts()).toEqual(['Node n3: 192.0.2.2 already belongs to Node/n2'])
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(conflicts()).toBeUndefined()
    drop(rival)
    expect(conflicts()).toEqual([])
  })

  test('follows the settings, and hands them out when they change', () => {
    const { state, sink, put } = setup()
    const taken = () => {
      const { settings, compiled } = atOnce(state.compile()) ?? {}
      return [settings?.config.compile.knobs.connectTcp, compiled?.desired.node?.knobs.connectTcp]
    }
    put(self)
    sink.synced()
    expect(taken()).toEqual([true, true])
    put(node)
    expect(taken()[0]).toBeUndefined()
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(taken()).toEqual([false, false])
  })

  test('is unknown until there is a Node of this name, whose absence is named', () => {
    const { told, state, sink, put } = setup()
    const missingNode = 'there is no Node n1 in the sources'
    put(node)
    sink.synced()
    const first = atOnce(state.compile())
    // the configuration says where health is served, and that is needed now
    expect(first).toMatchObject({ missingNode, compiled: undefined, settings: { config: { compile: { knobs: { connectTcp: true } } } } })
    expect(atOnce(state.compile())).toBeUndefined()
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(atOnce(state.compile())).toMatchObject({
      missingNode,
      compiled: undefined,
      settings: { config: { compile: { knobs: { connectTcp: false } } } },
    })
    put(self)
    expect(told.changes).toBe(3)
    const { compiled, missingNode: now } = atOnce(state.compile()) ?? {}
    expect(compiled?.desired).toMatchObject({ complete: true, node: { host: { addresses: self.addresses }, knobs: { connectTcp: false } } })
    expect(compiled?.desired.fragments.map((fragment) => fragment.owner)).toEqual(['Node/n1', 'Node/n2'])
    expect(now).toBeUndefined()
  })

  // its NodeNetwork is deleted after it
  test.each([[[]], [[said]]])('keeps the Node as it was last when that is deleted, with its NodeNetwork or without: %#', (others) => {
    const { state, desired, sink, put, drop } = setup()
    for (const other of others) put(other)
    put(self)
    sink.synced()
    const before = desired()
    drop(self)
    const result = atOnce(state.compile())
    expect(result?.missingNode).toBe('there is no Node n1 in the sources: its last good state stays in force')
    const change = result?.compiled?.desired
    expect(change?.node).toBeUndefined()
    expect(change?.fragments.find((fragment) => fragment.owner === 'Node/n1')?.rows ?? []).toEqual(before?.fragments[0]?.rows)
    state.requestResync()
    expect(desired()).toEqual(before)
    put(node)
    expect(desired()?.node?.host).toEqual(before?.node?.host)
    put(self)
    expect(atOnce(state.compile())).toMatchObject({ missingNode: undefined })
  })
})
