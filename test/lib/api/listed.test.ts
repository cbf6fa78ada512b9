// SPDX-License-Identifier: Apache-2.0
/** Lists of objects, parsed. Layer: test. */
import { expect, test } from 'vitest'
import { listBlocks, listKind } from '#lib/api/listed.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { formatCidr, parseCidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import { pod, pool } from '../../support/build.ts'

function server(...objects: readonly unknown[]) {
  const asked: unknown[] = []
  const list = (collection: { readonly kind: string }, options: object = {}) => {
    asked.push({ kind: collection.kind, ...options })
    return Promise.resolve(objects.map(asApiObject).filter(({ kind }) => kind === collection.kind))
  }
  return { list, asked }
}

test('pods are asked for as a watch does, and parsed', async () => {
  const { list, asked } = server(pod('shop/web', { node: 'n1' }), pool('p', { cidr: '10.1.0.0/16' }))
  const { found, unreadable } = await listKind({ list }, 'Pod')
  expect(found).toMatchObject([{ kind: 'Pod', namespace: 'shop', name: 'web', nodeName: 'n1' }])
  expect(unreadable).toEqual([])
  expect(asked).toMatchObject([{ kind: 'Pod', fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed' }])
})

test('an object that cannot be read is told apart', async () => {
  const { list } = server(pool('p', { cidr: '10.1.0.0/16' }), pool('odd', { cidr: 'x' }))
  const { found, unreadable } = await listKind({ list }, 'IPPool')
  expect(found.map(({ name }) => name)).toEqual(['p'])
  expect(unreadable).toMatchObject([{ ref: 'IPPool/odd', path: 'spec.cidr' }])
})

test('a block that cannot be read is told apart', async () => {
  const odd = { apiVersion: 'netplane.io/v3', kind: 'IPAMBlock', metadata: { name: 'odd' }, spec: { cidr: '10.1.0.64/26' } }
  const { list } = server(ipBlockObject(emptyBlock(parseCidr('10.1.0.0/26'), 'n1')), odd)
  const { found, unreadable } = await listBlocks({ list })
  expect(found.map(({ block, object }) => `${object.metadata.name} ${formatCidr(block.cidr)}`)).toEqual(['10-1-0-0-26 10.1.0.0/26'])
  expect(unreadable).toMatchObject([{ ref: 'IPAMBlock/odd', path: 'spec.node' }])
})
