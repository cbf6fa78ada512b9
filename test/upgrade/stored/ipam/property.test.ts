// SPDX-License-Identifier: Apache-2.0
/** Whatever blocks say: no pod loses its address, and no address is given twice. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { addrAt, overlaps } from '#lib/base/range.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { readInstallation } from '#upgrade/stored/installation.ts'
import { affinity, block, node, NOW, pod } from '../addresses.ts'
import { raw } from '../stored.ts'

const NODES = ['a', 'b', 'c']
const POOL = raw('IPPool', 'p', { spec: { cidr: '10.0.0.0/24', blockSize: 28 } })
const CIDRS = ['10.0.0.0/28', '10.0.0.16/28', '10.0.0.32/28']

const someNode = fc.constantFrom(...NODES, 'gone')
const given = fc.oneof(
  fc.tuple(fc.nat(9), someNode).map(([pod, on]) => `shop/p${pod} on ${on}`),
  someNode.map((on) => `tunnel of ${on}`),
  fc.constant('?'),
)
const blocks = fc.tuple(
  ...CIDRS.map((cidr) =>
    fc
      .record({
        node: fc.option(someNode, { nil: undefined }),
        given: fc.dictionary(fc.nat(15).map(String), given),
        free: fc.shuffledSubarray(sixteen()),
      })
      .map(({ node: of, given: held, free }) => ({
        cidr,
        object: block(cidr, { node: of, given: held, free: free.filter((at) => !(at in held)) }),
      })),
  ),
)
const pods = fc
  .uniqueArray(fc.record({ name: fc.nat(9), at: fc.nat(63), on: fc.constantFrom(...NODES) }), { selector: ({ at }) => at })
  .map((all) => [...new Map(all.map((one) => [one.name, one])).values()])

function sixteen(): number[] {
  return Array.from({ length: 16 }, (_, at) => at)
}

function heldIn({ cidr, held, node: of }: IPBlock): readonly string[] {
  return [...held].map(([index, { namespace, pod: name }]) => `${formatAddr(addrAt(cidr, index))} ${namespace}/${name} on ${of}`)
}

test('each pod has its address in one block of its node, and blocks do not overlap', () => {
  fc.assert(
    fc.property(blocks, pods, someNode, (all, live, of) => {
      const objects = [POOL, affinity(of, '10.0.0.16/28'), ...all.map(({ object }) => object)]
      const living = live.map(({ name, at, on }) => pod(`shop/p${name}`, on, `10.0.0.${at}`))
      const { outcomes, findings } = readInstallation({
        objects,
        pods: living,
        nodes: NODES.map((name) => node(name)),
        environment: {},
        now: NOW,
      })
      const made = outcomes.flatMap((one) => ('object' in one && one.object.kind === 'IPAMBlock' ? [parseIPBlock({ ...one.object })] : []))
      const held = made.flatMap(heldIn)
      for (const { name, at, on } of live) expect(held).toContain(`10.0.0.${at} shop/p${name} on ${on}`)
      expect(new Set(held.map((text) => text.split(' ')[0])).size).toBe(held.length)
      expect(made.filter((one) => made.some((other) => one !== other && overlaps(one.cidr, other.cidr)))).toEqual([])
      // nothing that is given is forgotten, and nothing that rests is given
      const told = new Set(findings.map(({ address }) => address))
      expect(
        made
          .flatMap(({ cidr, held: own }) => [...own.keys()].map((index) => formatAddr(addrAt(cidr, index))))
          .filter((text) => !told.has(text)),
      ).toEqual([])
      expect(made.filter((one) => [...one.freed.keys()].some((index) => one.held.has(index)))).toEqual([])
    }),
  )
})
