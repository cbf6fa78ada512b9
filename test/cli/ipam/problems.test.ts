// SPDX-License-Identifier: Apache-2.0
/** Where blocks, pods and nodes disagree. Layer: test. */
import { describe, expect, test } from 'vitest'
import { fieldsOf } from '#lib/base/object.ts'
import { checkText } from '../../../cli/ipam/check-text.ts'
import { readAddresses } from '../../../cli/ipam/cluster.ts'
import { findProblems } from '../../../cli/ipam/problems.ts'
import { node, nodeNetwork, pod, pool } from '../../support/build.ts'
import { addressesOf, announced, block } from './addresses.ts'

const POOL = pool('p', { cidr: '10.1.0.0/16' })
const NODES = [node('n1', { addresses: ['192.0.2.1'] }), node('n2', { addresses: ['192.0.2.2'], podCIDRs: ['10.9.0.0/24'] })]
const WEB = pod('shop/web', { node: 'n1', ips: ['10.1.0.1'] })

/** Where the objects have no NodeNetworks, these have every block. */
async function problems(...given: readonly unknown[]): Promise<readonly string[]> {
  const hasNetworks = given.some((one) => fieldsOf(one)['kind'] === 'NodeNetwork')
  const objects = hasNetworks ? given : [...given, ...announced(given)]
  const { view } = await addressesOf(...objects)
  return findProblems(view).map(({ kind, address = '-', block: range = '-', reason }) => `${kind} ${address} ${range}: ${reason}`)
}

describe('no problem', () => {
  test.each([
    ['an address that its pod has', [block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web' }), WEB]],
    ['a pod that starts', [block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web' }), pod('shop/web', { node: 'n1' })]],
    ['a pod with the address of its node', [pod('shop/host', { node: 'n1', ips: ['192.0.2.1'], hostNetwork: true })]],
    ['a pod of a range that Kubernetes gave to the node', [pod('shop/r', { node: 'n2', ips: ['10.9.0.7'] })]],
  ])('is %s', async (_, objects) => {
    expect(await problems(POOL, ...NODES, ...objects)).toEqual([])
  })
})

describe('a problem', () => {
  test.each<readonly [string, readonly unknown[], readonly string[]]>([
    [
      'an address of a pod that is gone',
      [block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web', '10.1.0.2': 'shop/gone' }), WEB],
      ['leaked 10.1.0.2 10.1.0.0/26: pod shop/gone does not have it'],
    ],
    [
      'an address of a pod that runs on another node by now',
      [block('10.1.0.0/26', 'n2', { '10.1.0.5': 'shop/web' }), block('10.1.0.64/26', 'n1', { '10.1.0.65': 'shop/web' })].concat(
        pod('shop/web', { node: 'n1', ips: ['10.1.0.65'] }),
      ),
      ['leaked 10.1.0.5 10.1.0.0/26: pod shop/web does not have it'],
    ],
    [
      'an address that no block has given',
      [block('10.1.0.0/26', 'n1'), WEB, pod('shop/far', { node: 'n1', ips: ['10.1.7.7'] })],
      ['unallocated 10.1.0.1 10.1.0.0/26: pod shop/web has it', 'unallocated 10.1.7.7 -: pod shop/far has it'],
    ],
    [
      'an address that another pod has: it is not leaked',
      [block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/gone' }), WEB],
      ['shared 10.1.0.1 10.1.0.0/26: pods shop/web, shop/gone'],
    ],
    [
      "a pod on another node than its block's",
      [block('10.1.0.0/26', 'n2', { '10.1.0.1': 'shop/web' }), WEB],
      ['borrowed 10.1.0.1 10.1.0.0/26: pod shop/web is on node n1, the block is of node n2'],
    ],
    ['a block with an address of a node', [block('192.0.2.0/26', 'n1')], ['node-address 192.0.2.1', 'node-address 192.0.2.2']],
    [
      'an address outside all pools',
      [block('10.2.0.0/26', 'n1', { '10.2.0.1': 'shop/web' }), pod('shop/web', { node: 'n1', ips: ['10.2.0.1'] })],
      ['no-pool 10.2.0.1 10.2.0.0/26: pod shop/web has it, and no IPPool'],
    ],
    ['a block of a node that is gone', [block('10.1.0.0/26', 'n9')], ['no-node - 10.1.0.0/26: there is no node n9']],
    [
      'blocks of several lengths that overlap',
      [block('10.1.0.0/24', 'n1'), block('10.1.0.64/26', 'n2'), block('10.1.1.0/26', 'n2')],
      ['overlap - 10.1.0.64/26: 10.1.0.0/24 of node n1, 10.1.0.64/26 of node n2'],
    ],
    [
      'an address of a device that a block has',
      [
        block('192.0.2.64/26', 'n1'),
        nodeNetwork('n1', { blocks: ['192.0.2.64/26'], interfaces: [{ name: 'eth1', addresses: ['192.0.2.65'] }] }),
      ],
      ['node-address 192.0.2.65 192.0.2.64/26: device eth1 of node n1 has it'],
    ],
    [
      'a block that its node does not announce',
      [block('10.1.0.0/26', 'n1'), block('10.1.0.64/26', 'n2'), nodeNetwork('n1', { blocks: [] })],
      [
        'not-announced - 10.1.0.0/26: the NodeNetwork of node n1 does not have it',
        'not-announced - 10.1.0.64/26: node n2 has no NodeNetwork',
      ],
    ],
    [
      'a block that another node announces, and one that is none',
      [
        block('10.1.0.0/26', 'n1'),
        nodeNetwork('n1', { blocks: ['10.1.0.0/26'] }),
        nodeNetwork('n2', { blocks: ['10.1.0.0/26', '10.1.5.0/26'] }),
      ],
      ['announced - 10.1.0.0/26: node n2 does, node n1 has the block', 'announced - 10.1.5.0/26: node n2 does, no node has the block'],
    ],
    ['a NodeNetwork that cannot be read', [nodeNetwork('n1', { blocks: 'x' })], ['unreadable - -: NodeNetwork n1: spec.blocks']],
    [
      'a block that cannot be read',
      [{ apiVersion: 'netplane.io/v3', kind: 'IPAMBlock', metadata: { name: 'odd' }, spec: { cidr: 'x', node: 'n1' } }],
      ['unreadable - -: IPAMBlock odd: spec.cidr'],
    ],
  ])('is %s', async (_, objects, expected) => {
    const found = await problems(POOL, ...NODES, ...objects)
    expect(found).toHaveLength(expected.length)
    for (const [at, text] of expected.entries()) expect(found[at]).toContain(text)
  })
})

test('blocks are read before pods: a pod that comes meanwhile must not make its address look leaked', async () => {
  const asked: string[] = []
  const list = ({ kind }: { readonly kind: string }) => {
    asked.push(kind)
    return Promise.resolve([])
  }
  await readAddresses({ list })
  expect(asked.slice(0, 2)).toEqual(['IPAMBlock', 'Pod'])
})

test('the text counts addresses and problems, and shows them when asked', async () => {
  const held = block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web', '10.1.0.2': 'shop/gone' })
  const { view } = await addressesOf(POOL, ...NODES, held, ...announced([held]), WEB)
  const input = { view, problems: findProblems(view), showAll: false, showProblems: false }
  const head = '1 blocks, 1 pools, 2 nodes, 1 pods\n2 addresses are given away, 1 are of pods\n'
  const end = '1 given away, and no pod has them\n\nCheck complete; found 1 problems.\n'
  expect(checkText(input)).toBe(`${head}\n${end}`)
  expect(checkText({ ...input, showAll: true, showProblems: true })).toBe(
    `${head}
IP        BLOCK        NODE  GIVEN TO   STATE
10.1.0.1  10.1.0.0/26  n1    shop/web   in use
10.1.0.2  10.1.0.0/26  n1    shop/gone  leaked

PROBLEM  IP        BLOCK        WHY
leaked   10.1.0.2  10.1.0.0/26  pod shop/gone does not have it

${end}`,
  )
})
