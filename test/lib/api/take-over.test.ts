// SPDX-License-Identifier: Apache-2.0
/** Which client owns which fields once an object has been taken over. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { takeOver } from '#lib/api/take-over.ts'

const MANAGER = 'netplanectl'

function patchOf(managedFields: readonly object[], annotations: Readonly<Record<string, string>> = {}) {
  const metadata = { name: 'netplane-node', resourceVersion: '7', annotations, managedFields }
  return takeOver(asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata }), MANAGER)
}

const of = (manager: string, operation: string, fieldsV1: object): object => ({
  ...{ manager, operation, apiVersion: 'apps/v1', fieldsType: 'FieldsV1' },
  fieldsV1,
})

const node = { 'f:spec': { 'f:template': { 'f:spec': { 'f:hostNetwork': {} } } } }
const grace = { 'f:spec': { 'f:template': { 'f:spec': { 'f:terminationGracePeriodSeconds': {} } } } }
const both = { 'f:spec': { 'f:template': { 'f:spec': { 'f:hostNetwork': {}, 'f:terminationGracePeriodSeconds': {} } } } }

test('fields of every other client become those of one apply', () => {
  expect(patchOf([of('kubectl-client-side-apply', 'Update', node), of('kubectl-edit', 'Update', grace)])?.metadata).toEqual({
    ...{ resourceVersion: '7', annotations: {} },
    managedFields: [of(MANAGER, 'Apply', both)],
  })
})

test('those that were ours stay ours beside them', () => {
  expect(patchOf([of(MANAGER, 'Apply', node), of('helm', 'Update', grace)])?.metadata.managedFields).toEqual([of(MANAGER, 'Apply', both)])
})

test('labels and annotations stay with who has set them, and a status with its controller', () => {
  const labels = { 'f:metadata': { 'f:labels': { 'f:team': {} } } }
  const status = { ...of('kube-controller-manager', 'Update', { 'f:status': {} }), subresource: 'status' }
  expect(patchOf([of('kubectl-edit', 'Update', { ...labels, ...node }), status])?.metadata.managedFields).toEqual([
    status,
    of('kubectl-edit', 'Update', labels),
    of(MANAGER, 'Apply', node),
  ])
})

test('what kubectl has applied last goes: its next apply would compare with it', () => {
  const last = 'kubectl.kubernetes.io/last-applied-configuration'
  expect(patchOf([of(MANAGER, 'Apply', node)], { [last]: '{}', team: 'net' })?.metadata.annotations).toEqual({ [last]: null })
})

test('an object whose fields are all ours is not written', () => {
  expect(patchOf([of(MANAGER, 'Apply', node), of('kubectl-label', 'Update', { 'f:metadata': {} })])).toBeUndefined()
  expect(patchOf([])).toBeUndefined()
})
