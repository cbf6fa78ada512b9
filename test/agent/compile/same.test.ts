// SPDX-License-Identifier: Apache-2.0
/** However a state came about, it compiles to the same as from nothing. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nameKey, refText } from '#lib/model/ref.ts'
import { Compiler } from '#agent/compile/compile.ts'
import type { DesiredChange, DesiredNode, Row } from '#agent/compile/desired.ts'
import { isServices } from '#agent/compile/row-keys.ts'
import { model, node, nodeNetwork, pod, pool, service, slice } from '../../support/build.ts'
import { cluster, World } from './world.ts'

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
      policy: fc.constantFrom('Cluster', 'Local'),
      selection: fc.constantFrom('Random', 'Maglev'),
    })
    .map(({ name, ip, port, nodePort, external, policy, selection }) =>
      service(name, {
        type: 'NodePort',
        clusterIPs: [ip],
        annotations: { 'netplane.io/backend-selection': selection },
        ports: [{ port, ...(nodePort === null ? {} : { nodePort }) }],
        spec: {
          externalTrafficPolicy: policy,
          ...(port === 81 ? { healthCheckNodePort: 32_000, sessionAffinity: 'ClientIP' } : {}),
          ...(external === null ? {} : { externalIPs: [external] }),
        },
      }),
    )
  const sliceArb = fc
    .record({
      name: fc.constantFrom('a-1', 'a-2', 'b-1', 'c-1'),
      service: fc.constantFrom('a', 'b', 'd'),
      endpoints: fc.array(fc.record({ addr, node: nodeName, ready: fc.boolean(), forZones: fc.subarray(['east', 'west']) }), {
        maxLength: 4,
      }),
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
      range: fc.constantFrom('10.0.1.0/24', '10.0.2.0/24', 'fd02::/64'),
      zone: fc.constantFrom('east', 'west'),
    })
    .map(({ name, range, ...of }) => node(name, { ...of, podCIDRs: [range] }))
  const networkArb = fc
    .record({
      name: nodeName,
      addresses: fc.subarray(['192.168.0.1', '192.168.0.3']),
      podCIDRs: fc.subarray(['10.0.1.0/24', 'fd02::/64']),
      blocks: fc.subarray(['10.0.2.64/26', 'fd02::/120']),
      subnets: fc.subarray(['192.168.0.0/31', 'fd01::/64']),
    })
    .map(({ name, ...spec }) => nodeNetwork(name, spec))
  const poolArb = fc
    .record({
      name: fc.constantFrom('pods', 'more'),
      cidr: fc.constantFrom('10.0.0.0/16', '10.0.2.0/24', 'fd02::/64'),
      natOutgoing: fc.boolean(),
      vxlanMode: fc.constantFrom('Never', 'CrossSubnet', 'Always'),
    })
    .map(({ name, ...spec }) => pool(name, spec))
  const step = fc.record({
    manifest: fc.oneof(serviceArb, sliceArb, podArb, nodeArb, networkArb, poolArb),
    gone: fc.boolean(),
    compile: fc.boolean(),
  })

  /** Applies changes as the data plane does. */
  class Applied {
    readonly rows = new Map<string, readonly Row[]>()
    node: DesiredNode | undefined

    apply(change: DesiredChange): void {
      if (change.complete) this.rows.clear()
      for (const { owner, rows } of change.fragments) {
        if (rows.length === 0) this.rows.delete(owner)
        else this.rows.set(owner, rows)
      }
      this.node = change.node ?? this.node
      const keys = [...this.rows.values()]
        .flat()
        .filter(isAlone)
        .map((row) => JSON.stringify([row.table, row.key]))
      expect(new Set(keys).size).toBe(keys.length)
    }
  }

  test('whatever changes, in whatever order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.boolean(), (steps, servesPods) => {
        const world = new World()
        world.input = { ...world.input, servesPods }
        const applied = new Applied()
        for (const { manifest, gone, compile } of steps) {
          if (gone) world.drop(manifest)
          else world.put(manifest)
          if (compile) applied.apply(world.compile())
        }
        applied.apply(world.compile())
        const fresh = new Applied()
        const compiler = new Compiler('n1')
        fresh.apply(atOnce(compiler.compileAll(world.input)))
        expect(new Map([...applied.rows].sort())).toEqual(new Map([...fresh.rows].sort()))
        expect(applied.node).toEqual(fresh.node)
        expect(atOnce(world.compiler.conflicts())).toEqual(atOnce(compiler.conflicts()))
      }),
      { numRuns: 300 },
    )
  })
})

/** Whether no other owner may have a row of the same key. Several owners may put one prefix into a set, or make one
 * address a service's. */
function isAlone(row: Row): boolean {
  return row.table !== 'ranges' && (row.table !== 'addrs' || !isServices(row))
}

test('rows are sorted by key, and the same input gives the same bytes', () => {
  const one = new World(...cluster)
  const other = new World(...cluster.toReversed())
  const text = (world: World): string => JSON.stringify([...world.compile().fragments].sort((a, b) => (a.owner < b.owner ? -1 : 1)))
  expect(text(one)).toBe(text(other))
  expect(refText(model(service('web')))).toBe(`Service/${nameKey(model(service('web')))}`)
})
