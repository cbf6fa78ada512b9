// SPDX-License-Identifier: Apache-2.0
/** Addresses that were given before this version. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { addrAt } from '#lib/base/range.ts'
import { assign } from '#lib/ipam/block.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { readInstallation } from '#upgrade/stored/installation.ts'
import { findingText } from '#upgrade/stored/ipam/findings.ts'
import { outcomeLines } from '#upgrade/stored/outcome.ts'
import type { Manifest } from '../../../support/build.ts'
import { affinity, block, node, NOW, pod } from '../addresses.ts'
import { raw } from '../stored.ts'

const POOL = raw('IPPool', 'p', { spec: { cidr: '10.0.0.0/16', blockSize: 26, nodeSelector: 'all()' } })
const NODES = [node('a', '10.244.0.0/24'), node('b', '10.244.1.0/24')]

function read(objects: readonly Manifest[], pods: readonly Manifest[], nodes: readonly Manifest[] = NODES) {
  const { outcomes, findings } = readInstallation({ objects: [POOL, ...objects], pods, nodes, environment: {}, now: NOW })
  const own = outcomes.filter(({ of }) => of === undefined || /^(IPAM|Block)/.test(of.kind))
  const blocks = own.flatMap((outcome) =>
    'object' in outcome && outcome.object.kind === 'IPAMBlock' ? [parseIPBlock({ ...outcome.object })] : [],
  )
  const lines = own.filter((outcome) => !('object' in outcome) || outcome.object.kind === 'IPAMBlock').flatMap(outcomeLines)
  return { blocks: blocks.map(blockText), lines, findings: findings.map(findingText), parsed: blocks }
}

/** "10.0.0.0/26 of a: .5 shop/web c-shop-web, … rests .3 .2" */
function blockText({ cidr, node: of, held, freed }: IPBlock): string {
  const text = (index: number): string => formatAddr(addrAt(cidr, index))
  const holders = [...held].map(([index, { namespace, pod: name, containerId }]) => `${text(index)} ${namespace}/${name} ${containerId}`)
  const rest = [...freed].toSorted(([, x], [, y]) => x - y).map(([index]) => text(index))
  return `${formatCidr(cidr)} of ${of}: ${holders.join(', ')}${rest.length === 0 ? '' : ` rests ${rest.join(' ')}`}`
}

describe('a pod keeps its address', () => {
  test('as the block says it', () => {
    const { blocks, lines, findings } = read(
      [block('10.0.0.0/26', { node: 'a', given: { 5: 'shop/web on a' } })],
      [pod('shop/web', 'a', '10.0.0.5')],
    )
    expect(blocks).toEqual(['10.0.0.0/26 of a: 10.0.0.5 shop/web c-shop-web'])
    expect(lines).toEqual(['carried IPAMBlock 10-0-0-0-26 as 10-0-0-0-26'])
    expect(findings).toEqual(['carried 10.0.0.5 of shop/web: as the block says'])
  })

  test.each<[string, Record<number, string>, string]>([
    ['names another pod', { 5: 'shop/old on a' }, 'the block says that shop/old has it'],
    ['names no holder, as very old ones do', { 5: '?' }, 'the block names no holder'],
    ['says that it is free', {}, 'the block says that it is free'],
  ])('when the block %s', (_what, given, reason) => {
    const { blocks, findings } = read([block('10.0.0.0/26', { node: 'a', given })], [pod('shop/web', 'a', '10.0.0.5')])
    expect(blocks).toEqual(['10.0.0.0/26 of a: 10.0.0.5 shop/web c-shop-web'])
    expect(findings).toEqual([`carried 10.0.0.5 of shop/web: ${reason}`])
  })

  test('of both families', () => {
    const objects = [
      block('10.0.0.0/26', { node: 'a', given: { 5: 'shop/web on a' } }),
      block('fd00::40/122', { node: 'a', given: { 1: 'shop/web on a' } }),
    ]
    expect(read(objects, [pod('shop/web', 'a', '10.0.0.5', 'fd00::41')]).blocks).toEqual([
      '10.0.0.0/26 of a: 10.0.0.5 shop/web c-shop-web',
      'fd00::40/122 of a: fd00::41 shop/web c-shop-web',
    ])
  })

  test('before its kubelet has told it, by the annotation of the old plugin', () => {
    const starting = pod('shop/web', 'a')
    const annotated = {
      ...starting,
      metadata: { name: 'web', namespace: 'shop', annotations: { 'cni.netplane.io/podIPs': '10.0.0.5/32' } },
    }
    const given = { 5: 'shop/web on a' }
    expect(read([block('10.0.0.0/26', { node: 'a', given })], [annotated]).findings).toEqual([
      'carried 10.0.0.5 of shop/web: as the block says',
    ])
    expect(read([block('10.0.0.0/26', { node: 'a', given })], [starting]).findings).toEqual([
      'carried 10.0.0.5 of shop/web: its pod has not been told an address yet',
    ])
  })

  test('that is in a pool and in no stored block: a block is made', () => {
    const { blocks, lines } = read([block('10.0.1.0/26', { node: 'b' })], [pod('shop/web', 'a', '10.0.0.70')])
    expect(blocks).toEqual(['10.0.0.64/26 of a: 10.0.0.70 shop/web c-shop-web', '10.0.1.0/26 of b: '])
    expect(lines).toContain('  spec.cidr: – → "10.0.0.64/26": no block is stored: one is made')
  })

  test('that is of the range of its node, or of another plugin', () => {
    const pods = [pod('shop/web', 'a', '10.244.0.9'), pod('shop/far', 'a', '172.16.0.9')]
    expect(read([], pods)).toMatchObject({
      blocks: [],
      findings: ["carried 10.244.0.9 of shop/web: of its node's podCIDR", 'carried 172.16.0.9 of shop/far: another plugin has given it'],
    })
  })

  test('but not one that nothing of this installation can have given', () => {
    expect(read([block('10.0.0.0/26', { node: 'a' })], [pod('shop/far', 'a', '172.16.0.9')]).findings).toEqual([
      "refused 172.16.0.9 of shop/far: is in no stored block, in no pool and not in its node's podCIDR",
    ])
  })

  test('and of two that say the same one has it', () => {
    const pods = [pod('shop/a', 'a', '10.0.0.5'), pod('shop/b', 'a', '10.0.0.5')]
    expect(read([block('10.0.0.0/26', { node: 'a' })], pods).findings).toEqual([
      'carried 10.0.0.5 of shop/a: the block says that it is free',
      'refused 10.0.0.5 of shop/b: pod shop/a has it as well',
    ])
  })
})

describe('a borrowed address', () => {
  test('becomes a block of the node that borrowed it, and the rest stay with the owner', () => {
    const given = { 1: 'shop/own on a', 5: 'shop/far on b' }
    const { blocks, lines, findings } = read(
      [block('10.0.0.0/28', { node: 'a', given, free: [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 4, 3, 2] })],
      [pod('shop/own', 'a', '10.0.0.1'), pod('shop/far', 'b', '10.0.0.5')],
    )
    expect(blocks).toEqual([
      '10.0.0.0/30 of a: 10.0.0.1 shop/own c-shop-own rests 10.0.0.0 10.0.0.3 10.0.0.2',
      '10.0.0.4/32 of a:  rests 10.0.0.4',
      '10.0.0.5/32 of b: 10.0.0.5 shop/far c-shop-far',
      '10.0.0.6/31 of a: ',
      '10.0.0.8/29 of a: ',
    ])
    expect(lines).toContain(
      '  spec.cidr: "10.0.0.0/28" → "10.0.0.5/32": pods of several nodes have its addresses, and nodes lend each other none',
    )
    expect(lines).toContain('  spec.node: "a" → "b": the pods that have its addresses are on this node')
    expect(findings).toContain('carried 10.0.0.5 of shop/far: borrowed by node b')
  })

  test('of a block that its node does not need takes the whole block along', () => {
    const given = { 5: 'shop/far on b', 9: 'shop/gone on a' }
    const { blocks } = read([block('10.0.0.0/26', { node: 'a', given })], [pod('shop/far', 'b', '10.0.0.5')])
    expect(blocks).toEqual(['10.0.0.0/26 of b: 10.0.0.5 shop/far c-shop-far, 10.0.0.9 shop/gone c-shop-gone'])
  })
})

describe('a block', () => {
  test.each<[string, readonly Manifest[], readonly string[]]>([
    ['of no node has that of its affinity', [block('10.0.0.0/26', {}), affinity('b', '10.0.0.0/26')], ['10.0.0.0/26 of b: ']],
    [
      'of no node is left when its affinity is only pending',
      [block('10.0.0.0/26', {}), affinity('b', '10.0.0.0/26', { state: 'pending' })],
      [],
    ],
    ['of no node is left when its affinity is deleted', [block('10.0.0.0/26', {}), affinity('b', '10.0.0.0/26', { deleted: 'true' })], []],
    ['that is deleted does not exist', [block('10.0.0.0/26', { node: 'a', more: { deleted: true } })], []],
    [
      'of a node that is gone stays its, until the controllers take it back',
      [block('10.0.0.0/26', { node: 'gone' })],
      ['10.0.0.0/26 of gone: '],
    ],
    ['of services is not carried', [block('10.0.0.0/26', { node: 'virtual:load-balancer', given: { 1: 'service lb' } })], []],
  ])('%s', (_what, objects, expected) => {
    expect(read(objects, []).blocks).toEqual(expected)
  })

  test.each<[Manifest, string]>([
    [{ cidr: 'x' }, 'spec.cidr: "x": must be an IP prefix'],
    [{ allocations: [null] }, 'spec.allocations: [null]: must be one for each address of 10.0.0.0/26'],
    [{ affinity: 'rack:1' }, 'spec.affinity: "rack:1": must be host:<node>'],
    [{ unallocated: [64] }, 'spec.unallocated[0]: 64: must be 0..63'],
    [{ attributes: [5] }, 'spec.attributes[0]: 5: must be an object'],
  ])('with %j is refused', (more, fault) => {
    expect(read([block('10.0.0.0/26', { node: 'a', more })], []).lines.join('\n')).toContain(`refused IPAMBlock 10-0-0-0-26\n  ${fault}`)
  })

  test('that another one names as well is refused, and so is that', () => {
    const twice = [block('10.0.0.0/26', { node: 'a' }), { ...block('10.0.0.0/26', { node: 'b' }), metadata: { name: 'other' } }]
    expect(read(twice, []).lines).toEqual([
      'refused IPAMBlock 10-0-0-0-26',
      '  metadata.name: "10-0-0-0-26": IPAMBlock other has the same name here',
      'refused IPAMBlock other',
      '  metadata.name: "10-0-0-0-26": IPAMBlock 10-0-0-0-26 has the same name here',
    ])
  })
})

test.each<[string, string, string]>([
  ['a pod that is gone', 'shop/gone on a', 'leak 10.0.0.5 of shop/gone: no pod has it'],
  ['a pod of a node that is gone', 'shop/gone on gone', 'leak 10.0.0.5 of shop/gone: node gone is not there any more'],
  ['no holder', '?', 'leak 10.0.0.5: no pod has it, and the block names no holder'],
  [
    'the tunnel of a node',
    'tunnel of a',
    'carried 10.0.0.5 of vxlan-tunnel-addr-a: of the tunnel of node a, whose agent of this version gives it back',
  ],
  ['the tunnel of a node that is gone', 'tunnel of gone', 'leak 10.0.0.5 of vxlan-tunnel-addr-gone: node gone is not there any more'],
  ['a service', 'service lb', 'refused 10.0.0.5 of lb-x: services get no addresses of pools here'],
])('an address of %s stays given, and is reported', (_whose, given, expected) => {
  const { findings, parsed } = read([block('10.0.0.0/26', { node: 'a', given: { 5: given } })], [])
  expect(findings).toEqual([expected])
  expect([...(parsed[0]?.held.keys() ?? [])]).toEqual([5])
})

test('an address that a pod had before it got another one is no longer its own', () => {
  const given = { 5: 'shop/web on a', 6: 'shop/web on a' }
  expect(read([block('10.0.0.0/26', { node: 'a', given })], [pod('shop/web', 'a', '10.0.0.6')]).findings).toEqual([
    'leak 10.0.0.5 of shop/web: no pod has it',
    'carried 10.0.0.6 of shop/web: as the block says',
  ])
})

test('addresses that were given back lately are given last, in the order in which they came back', () => {
  const { parsed } = read([block('10.0.0.0/29', { node: 'a', given: { 0: '?', 1: '?', 2: '?' }, free: [6, 7, 5, 3, 4] })], [])
  const given: string[] = []
  for (let one = parsed[0], number = 0; one !== undefined && number < 5; number++) {
    const holder = { namespace: 'shop', pod: `p${number}`, containerId: `p${number}` }
    const assigned = assign(one, { holder, now: NOW, restMs: 60_000, network: true, hurry: true })
    given.push(assigned === undefined ? 'none' : formatAddr(assigned.addr))
    one = assigned?.block
  }
  expect(given).toEqual(['10.0.0.6', '10.0.0.7', '10.0.0.5', '10.0.0.3', '10.0.0.4'])
})

test.each<[Manifest, string]>([
  [raw('IPAMHandle', 'h', { spec: { handleID: 'h', block: { '10.0.0.0/26': 1 } } }), 'left IPAMHandle h: the block says the same'],
  [affinity('a', '10.0.0.0/26'), 'left BlockAffinity a-10-0-0-0-26: the block says the same'],
  [affinity('a', '10.0.0.0/26', { deleted: 'true' }), 'left BlockAffinity a-10-0-0-0-26: it is deleted'],
  [
    raw('IPAMConfig', 'default', { spec: { strictAffinity: true } }),
    'left IPAMConfig default: nodes lend each other no addresses in any case',
  ],
  [
    raw('IPAMConfig', 'default', { spec: { autoAllocateBlocks: false } }),
    'refused IPAMConfig default\n  spec.autoAllocateBlocks: false: nodes take blocks',
  ],
])('rows beside blocks: %#', (object, expected) => {
  expect(read([object], []).lines.join('\n')).toContain(expected)
})

test('a Pod that cannot be read is refused', () => {
  expect(read([], [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'A' } }]).findings).toEqual([
    'refused: metadata.name: must be lower-case letters, digits, "-" and "."',
  ])
})
