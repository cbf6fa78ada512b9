// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { FelixConfiguration } from '#lib/model/felix-configuration.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { Wanted } from '#agent/wanted.ts'

const node: KubeObject = {
  kind: 'Node',
  namespace: '',
  name: 'n2',
  addresses: [parseAddr('192.0.2.2')],
  podCIDRs: [parseCidr('10.1.2.0/24')],
}

function felix(spec: FelixConfiguration['spec']): FelixConfiguration {
  return { kind: 'FelixConfiguration', namespace: '', name: 'default', spec }
}

function setup() {
  const told = { changes: 0 }
  const store = new Store({ sources: ['test'], onChange: () => told.changes++ })
  const configs: boolean[] = []
  const wanted = new Wanted({ node: 'n1', store, onConfig: ({ config }) => configs.push(config.compile.connectTcp) })
  const sink = store.sink('test')
  return { told, wanted, sink, configs, put: (object: KubeObject) => sink.apply([{ kind: 'upsert', object }]) }
}

describe('what is wanted', () => {
  test('is unknown until every source is synced, which is told', () => {
    const { told, wanted, sink, put } = setup()
    put(node)
    expect([told.changes, wanted.take(false)]).toEqual([0, undefined])
    sink.synced()
    expect(told.changes).toBe(1)
    const first = wanted.take(false)
    expect(first?.complete).toBe(true)
    expect(first?.fragments.map((fragment) => fragment.owner)).toEqual(['Node/n2'])
    expect(first?.node?.routes).toHaveLength(1)
  })

  test('is only what changed afterwards, and everything when that is asked for', () => {
    const { wanted, sink, put } = setup()
    sink.synced()
    wanted.take(false)
    expect(wanted.take(false)).toBeUndefined()
    put(node)
    expect(wanted.take(false)).toMatchObject({ complete: false, fragments: [{ owner: 'Node/n2' }] })
    expect(wanted.take(true)?.complete).toBe(true)
  })

  test('follows the configuration', () => {
    const { wanted, sink, put, configs } = setup()
    sink.synced()
    expect(wanted.take(false)?.node?.connectTime).toBe(true)
    put(felix({ bpfConnectTimeLoadBalancing: 'Disabled' }))
    expect(wanted.take(false)?.node?.connectTime).toBe(false)
    expect(configs).toEqual([true, false])
  })
})
