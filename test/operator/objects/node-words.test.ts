// SPDX-License-Identifier: Apache-2.0
/** What is taken back of what agents have said, and what stays. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { takeBackNodeWords } from '#operator/objects/node-words.ts'

function node(name: string, reason: string): ApiObject {
  const conditions = [
    { type: 'Ready', status: 'True' },
    ...(reason === '' ? [] : [{ type: 'NetworkUnavailable', status: 'False', reason }]),
  ]
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions } })
}

function network(name: string, status?: object): ApiObject {
  return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name }, ...(status && { status }) })
}

const NODES = [node('a', 'NetplaneIsUp'), node('b', 'NetplaneIsNotReady'), node('c', 'FlannelIsUp'), node('d', '')]
const NETWORKS = [network('a', { version: 'v3.31.5' }), network('b')]

/** Writes, and what could not be written. */
async function takeBack(more: { readonly lock?: string; readonly mayAct?: boolean; readonly error?: ApiError } = {}) {
  const writes: string[] = []
  const patch: ApiClient['patch'] = ({ kind, name }, body, { type, subresource }) => {
    if (more.error !== undefined) return Promise.reject(more.error)
    writes.push([kind, name, subresource, type, JSON.stringify(body)].join(' '))
    return Promise.resolve(asApiObject({ apiVersion: 'v1', kind, metadata: { name } }))
  }
  const refuse = (): Promise<never> => Promise.reject(new Error('not asked for'))
  const client = { patch, get: refuse, list: refuse, create: refuse, update: refuse, delete: refuse, request: refuse }
  const input = { client, nodes: NODES, nodeNetworks: NETWORKS, whyLocked: () => more.lock, mayAct: () => more.mayAct !== false }
  const troubles = await takeBackNodeWords(input, new AbortController().signal)
  return { writes, troubles: troubles.map(({ object, reason }) => `${object} ${reason}`) }
}

const CONDITION = '{"status":{"conditions":[{"$patch":"delete","type":"NetworkUnavailable"}]}}'

test('our condition goes from Nodes and the status from NodeNetworks; what others say stays', async () => {
  expect(await takeBack()).toEqual({
    writes: [`Node a status strategic ${CONDITION}`, `Node b status strategic ${CONDITION}`, 'NodeNetwork a status merge {"status":null}'],
    troubles: [],
  })
})

test('a locked datastore keeps our own objects as they are, and is told', async () => {
  const { writes, troubles } = await takeBack({ lock: 'it is locked' })
  expect(writes).toHaveLength(2)
  expect(troubles).toEqual(['NodeNetwork a DatastoreLocked'])
})

test('a node that is gone is no trouble, a refusal is one, and nothing is written once another process may act', async () => {
  const error = (status: number, reason: string): ApiError => new ApiError({ status, reason, message: reason })
  expect(await takeBack({ error: error(404, 'NotFound') })).toEqual({ writes: [], troubles: [] })
  expect((await takeBack({ error: error(403, 'Forbidden') })).troubles).toEqual([
    'Node a Refused',
    'Node b Refused',
    'NodeNetwork a Refused',
  ])
  expect(await takeBack({ mayAct: false })).toEqual({ writes: [], troubles: [] })
})
