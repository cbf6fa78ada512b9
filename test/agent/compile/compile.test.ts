// SPDX-License-Identifier: Apache-2.0
/** Changes in, changes out: as much as changed, and in the end the same as from nothing. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import { nameKey, refText } from '#lib/model/ref.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { Store } from '#lib/store/store.ts'
import { Compiler } from '#agent/compile/compile.ts'
import type { CompileInput } from '#agent/compile/compile.ts'
import type { DesiredChange, DesiredNode } from '#agent/compile/desired.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { model, node, pod, service, slice, storeOf } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'
import { showChange, showFragment } from '../../support/show.ts'

/** A store and a compiler that follows it. */
class World {
  readonly store: Store
  readonly compiler = new Compiler('n1')
  input: CompileInput

  constructor(...manifests: readonly Manifest[]) {
    this.store = storeOf(manifests)
    this.input = { snapshot: this.store.snapshot, settings: defaultConfig.compile, selfAddresses: [] }
  }

  put(...manifests: readonly Manifest[]): void {
    this.store.sink('test').apply(manifests.map((manifest) => ({ kind: 'upsert', object: model(manifest) })))
  }

  drop(...manifests: readonly Manifest[]): void {
    this.store.sink('test').apply(
      manifests.map((manifest) => {
        const { kind, namespace, name } = model(manifest)
        return { kind: 'delete', ref: { kind, namespace, name } }
      }),
    )
  }

  compile(): DesiredChange {
    return this.compiler.compileChanges(this.input, this.store.takeChanges())
  }

  /** Owners of what comes out, and whether the node part does. */
  owners(): string[] {
    const change = this.compile()
    return [...change.fragments.map(({ owner }) => owner).sort(), ...(change.node === undefined ? [] : ['node'])]
  }

  get conflicts(): string[] {
    return this.compiler.conflicts().map(rejectedText)
  }
}

const cluster = [
  node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24'] }),
  node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.2.0/24'] }),
  service('web'),
  slice('web-1', {
    endpoints: [
      { addr: '10.0.1.1', node: 'n1' },
      { addr: '10.0.2.1', node: 'n2' },
    ],
  }),
  service('other', { clusterIPs: ['10.96.0.2'] }),
  pod('a', { node: 'n1', ips: ['10.0.1.1'] }),
  pod('b', { node: 'n2', ips: ['10.0.2.1'] }),
]
const vethA = workloadInterface({ namespace: 'default', name: 'a' })

test('the first time it is everything', () => {
  const world = new World(...cluster)
  world.input = { ...world.input, selfAddresses: [parseAddr('127.0.0.1'), parseAddr('192.168.0.1')] }
  const change = world.compile()
  expect(change.complete).toBe(true)
  expect(showChange(change)).toBe(`Node/n1
  127.0.0.1 self
  192.168.0.1 self
Node/n2
  192.168.0.2 node
Pod/default/a
  10.0.1.1 pod ${vethA}
Service/default/other
  10.96.0.2:80/TCP -> #1 of 0
Service/default/web
  10.96.0.1:80/TCP -> #1 of 2
  #1[0] 10.0.1.1:8080
  #1[1] 10.0.2.1:8080 at 192.168.0.2
node 192.168.0.1 ::
  tunnel vni 20048 port 4789
  connect-time tcp
  workload ${vethA} default/a
  host 192.168.0.1
  route 10.0.2.0/24 via 192.168.0.2
  sysctl net/ipv4/ip_forward=1
  sysctl net/ipv6/conf/all/forwarding=1`)
})

describe('afterwards it is what changed:', () => {
  test.each<[string, (world: World) => void, string[]]>([
    ['nothing', () => undefined, []],
    [
      'a slice',
      (world) => {
        world.put(slice('web-1', { endpoints: ['10.0.1.1'] }))
      },
      ['Service/default/web'],
    ],
    [
      'a slice that changes its service',
      (world) => {
        world.put(slice('web-1', { service: 'other' }))
      },
      ['Service/default/other', 'Service/default/web'],
    ],
    [
      'a service',
      (world) => {
        world.put(service('web', { ports: [{ port: 81 }] }))
      },
      ['Service/default/web'],
    ],
    [
      'a pod of ours',
      (world) => {
        world.put(pod('c', { node: 'n1', ips: ['10.0.1.2'] }))
      },
      ['Pod/default/c', 'node'],
    ],
    [
      'a pod of ours that gets its address',
      (world) => {
        world.put(pod('a', { node: 'n1', ips: ['10.0.1.9'] }))
      },
      ['Pod/default/a'],
    ],
    [
      'a pod of ours that ends',
      (world) => {
        world.put(pod('a', { node: 'n1', ips: ['10.0.1.1'], phase: 'Failed' }))
      },
      ['Pod/default/a', 'node'],
    ],
    [
      'someone else’s pod',
      (world) => {
        world.put(pod('d', { node: 'n2', ips: ['10.0.2.2'] }))
      },
      [],
    ],
    [
      'a node’s range',
      (world) => {
        world.put(node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.9.0/24'] }))
      },
      ['Node/n2', 'node'],
    ],
    [
      'a node’s address',
      (world) => {
        world.put(node('n2', { addresses: ['192.168.0.9'], podCIDRs: ['10.0.2.0/24'] }))
      },
      ['Node/n2', 'Service/default/web', 'node'],
    ],
    [
      'a new node without pods',
      (world) => {
        world.put(node('n3', { addresses: ['192.168.0.3'] }))
      },
      ['Node/n3'],
    ],
    [
      'a node that goes',
      (world) => {
        world.drop(node('n2'))
      },
      ['Node/n2', 'Service/default/web', 'node'],
    ],
    [
      'our addresses',
      (world) => {
        world.input = { ...world.input, selfAddresses: [parseAddr('127.0.0.1')] }
      },
      ['Node/n1'],
    ],
    [
      'settings',
      (world) => {
        world.input = { ...world.input, settings: { ...world.input.settings, connectTcp: false } }
      },
      ['node'],
    ],
    [
      'the veths’ prefix',
      (world) => {
        world.input = { ...world.input, settings: { ...world.input.settings, interfacePrefix: 'veth' } }
      },
      ['Pod/default/a', 'node'],
    ],
  ])('%s', (_, change, owners) => {
    const world = new World(...cluster)
    world.compile()
    change(world)
    expect(world.owners()).toEqual(owners)
    expect(world.owners()).toEqual([])
  })

  test('an object that is gone has an empty fragment', () => {
    const world = new World(...cluster)
    world.compile()
    world.drop(service('web'), pod('a'))
    expect(world.compile()).toMatchObject({
      complete: false,
      fragments: [
        { owner: 'Service/default/web', rows: [] },
        { owner: 'Pod/default/a', rows: [] },
      ],
    })
  })
})

describe('what two objects want', () => {
  test('a cluster address cannot be taken by naming it as an external one', () => {
    const world = new World(service('web'), service('a-thief', { clusterIPs: ['10.96.0.9'], spec: { externalIPs: ['10.96.0.1'] } }))
    expect(showChange({ ...world.compile(), node: undefined })).toBe(
      'Service/default/a-thief\n  10.96.0.9:80/TCP -> #1 of 0\nService/default/web\n  10.96.0.1:80/TCP -> #1 of 0',
    )
    expect(world.conflicts).toEqual(['Service default/a-thief: 10.96.0.1:80/TCP already belongs to Service/default/web'])
    world.drop(service('web'))
    expect(world.owners()).toEqual(['Service/default/a-thief', 'Service/default/web'])
    expect(world.conflicts).toEqual([])
  })

  test('a node port twice: the first name has it, also when it comes later', () => {
    const of = (name: string, at: number): Manifest =>
      service(name, { clusterIPs: [`10.96.0.${at}`], ports: [{ port: 80, nodePort: 30080 }] })
    const world = new World(of('b', 2), of('c', 3))
    world.compile()
    expect(world.conflicts).toEqual(['Service default/c: 0.0.0.0:30080/TCP already belongs to Service/default/b'])
    world.put(of('a', 1))
    expect(world.owners()).toEqual(['Service/default/a', 'Service/default/b'])
    expect(world.conflicts).toEqual([
      'Service default/b: 0.0.0.0:30080/TCP already belongs to Service/default/a',
      'Service default/c: 0.0.0.0:30080/TCP already belongs to Service/default/a',
    ])
  })

  test('a pod’s address passes to the pod that stays', () => {
    const world = new World(
      pod('a', { node: 'n1', ips: ['10.0.1.1'], terminating: true }),
      pod('b', { node: 'n1', ips: ['10.0.1.1'] }),
      pod('c', { node: 'n1', ips: ['192.168.0.1'] }),
      node('n1', { addresses: ['192.168.0.1'] }),
    )
    const owners = world.compile().fragments.map(showFragment)
    expect(owners).toContain(`Pod/default/b\n  10.0.1.1 pod ${workloadInterface({ namespace: 'default', name: 'b' })}`)
    expect(owners.some((text) => text.startsWith('Pod/default/a') || text.startsWith('Pod/default/c'))).toBe(false)
    world.drop(pod('b'))
    expect(world.owners()).toEqual(['Pod/default/a', 'Pod/default/b', 'node'])
  })
})

describe('in the end it is the same as from nothing', () => {
  const addr = fc.constantFrom('10.0.1.1', '10.0.1.2', '10.0.2.1', 'fd02::1', 'fd02::2')
  const nodeName = fc.constantFrom('n1', 'n2', 'n3')
  const serviceArb = fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      ip: fc.constantFrom('10.96.0.1', '10.96.0.2', 'fd00::1', 'None'),
      port: fc.constantFrom(80, 81),
      nodePort: fc.option(fc.constantFrom(30080, 30081)),
      external: fc.option(fc.constantFrom('10.96.0.1', '198.51.100.1')),
    })
    .map(({ name, ip, port, nodePort, external }) =>
      service(name, {
        type: 'NodePort',
        clusterIPs: [ip],
        ports: [{ port, ...(nodePort === null ? {} : { nodePort }) }],
        spec: external === null ? {} : { externalIPs: [external] },
      }),
    )
  const sliceArb = fc
    .record({
      name: fc.constantFrom('a-1', 'a-2', 'b-1', 'c-1'),
      service: fc.constantFrom('a', 'b', 'd'),
      endpoints: fc.array(fc.record({ addr, node: nodeName, ready: fc.boolean() }), { maxLength: 4 }),
      v6: fc.boolean(),
    })
    .map(({ name, service: of, endpoints, v6 }) =>
      slice(name, {
        service: of,
        addressType: v6 ? 'IPv6' : 'IPv4',
        endpoints: endpoints.filter((endpoint) => endpoint.addr.includes(':') === v6),
      }),
    )
  const podArb = fc
    .record({
      name: fc.constantFrom('p', 'q'),
      node: nodeName,
      ip: addr,
      phase: fc.constantFrom('Running', 'Failed'),
      terminating: fc.boolean(),
    })
    .map(({ name, ip, ...of }) => pod(name, { ...of, ips: [ip] }))
  const nodeArb = fc
    .record({
      name: nodeName,
      addresses: fc.subarray(['192.168.0.1', '192.168.0.2', 'fd01::1']),
      range: fc.constantFrom('10.0.1.0/24', '10.0.2.0/24'),
    })
    .map(({ name, addresses, range }) => node(name, { addresses, podCIDRs: [range] }))
  const step = fc.record({
    manifest: fc.oneof(serviceArb, sliceArb, podArb, nodeArb),
    gone: fc.boolean(),
    compile: fc.boolean(),
    self: fc.option(fc.subarray(['127.0.0.1', '192.168.0.2'])),
  })

  /** Applies changes as the data plane does. */
  class Applied {
    readonly rows = new Map<string, readonly unknown[]>()
    node: DesiredNode | undefined

    apply(change: DesiredChange): void {
      if (change.complete) this.rows.clear()
      for (const { owner, rows } of change.fragments) {
        if (rows.length === 0) this.rows.delete(owner)
        else this.rows.set(owner, rows)
      }
      this.node = change.node ?? this.node
      const keys = [...this.rows.values()].flat().map((row) => JSON.stringify(keyOf(row)))
      expect(new Set(keys).size).toBe(keys.length)
    }
  }

  test('whatever changes, in whatever order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const world = new World()
        const applied = new Applied()
        for (const { manifest, gone, compile, self } of steps) {
          if (gone) world.drop(manifest)
          else world.put(manifest)
          if (self !== null) world.input = { ...world.input, selfAddresses: self.map(parseAddr) }
          if (compile) applied.apply(world.compile())
        }
        applied.apply(world.compile())
        const fresh = new Applied()
        const compiler = new Compiler('n1')
        fresh.apply(compiler.compileAll(world.input))
        expect(new Map([...applied.rows].sort())).toEqual(new Map([...fresh.rows].sort()))
        expect(applied.node).toEqual(fresh.node)
        expect(world.compiler.conflicts()).toEqual(compiler.conflicts())
      }),
      { numRuns: 300 },
    )
  })
})

function keyOf(row: unknown): unknown {
  return typeof row === 'object' && row !== null && 'key' in row && 'table' in row ? [row.table, row.key] : row
}

test('rows are sorted by key, and the same input gives the same bytes', () => {
  const one = new World(...cluster)
  const other = new World(...cluster.toReversed())
  const text = (world: World): string => JSON.stringify([...world.compile().fragments].sort((a, b) => (a.owner < b.owner ? -1 : 1)))
  expect(text(one)).toBe(text(other))
  expect(refText(model(service('web')))).toBe(`Service/${nameKey(model(service('web')))}`)
})
