// SPDX-License-Identifier: Apache-2.0
/** Edits of an installation as it was found. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Edits } from '#upgrade/edits/edit.ts'
import { readEdits } from '#upgrade/edits/read.ts'
import type { Found } from '#upgrade/found/found.ts'
import { installation, variable } from './served.ts'

const live = installation('3.27.5', 'netplane', [variable('FELIX_LOGSEVERITYSCREEN', 'Debug')])

const found: Found = {
  method: 'manifest',
  variant: 'netplane',
  target: 'netplane',
  datastore: 'kubernetes',
  version: '3.27.5',
  namespace: 'kube-system',
  daemonSet: asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'netplane-node', namespace: 'kube-system' } }),
  isBpf: false,
  environment: {},
  release: undefined,
}

function read(more: Partial<Found>, objects: readonly ApiObject[] = live): Edits {
  return readEdits({ serverVersion: undefined, objects }, { ...found, ...more }, [])
}

test('of a manifest its objects are compared with those of its version', () => {
  const { edits, felix } = read({})
  expect([edits.length, felix]).toEqual([1, { logSeverityScreen: 'Debug' }])
})

test('a kind that was not read is not said to be gone', () => {
  expect(
    read(
      {},
      live.filter(({ kind }) => !kind.startsWith('ClusterRole')),
    ).edits.length,
  ).toBe(1)
})

test('of an installation of ours, and of one without an Installation, there are none', () => {
  expect([read({ variant: undefined }), read({ method: 'operator' })].map(({ edits, refusals }) => [edits, refusals])).toEqual([
    [[], []],
    [[], []],
  ])
})

test('a variant for etcd is refused, as its manifest is not known', () => {
  expect(read({ datastore: 'etcd' }).refusals.map(({ resource }) => resource)).toEqual(['DaemonSet kube-system/netplane-node'])
})
