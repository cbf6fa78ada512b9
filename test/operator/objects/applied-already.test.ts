// SPDX-License-Identifier: Apache-2.0
/** Whether an apply of ours would change nothing. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isAppliedAlready } from '#operator/objects/applied-already.ts'

const LABELS = { 'f:metadata': { 'f:labels': { 'f:app': {} } } }

/** As a server has it that was told of `wanted`, with these fields of ours. */
function foundOf(wanted: ApiObject, fieldsV1: object, changed: object = {}): ApiObject {
  const managedFields = [
    { manager: 'another', operation: 'Update', fieldsV1: { 'f:status': {} } },
    { manager: 'netplane-operator', operation: 'Apply', fieldsV1: { ...LABELS, ...fieldsV1 } },
  ]
  return asApiObject({ ...wanted, metadata: { ...wanted.metadata, uid: 'u', managedFields }, status: {}, ...changed })
}

const role = asApiObject({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'x', namespace: 'y', labels: { app: 'x' } } },
  rules: [{ verbs: ['get'] }],
})
const pods = asApiObject({
  ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'x', labels: { app: 'x' } } },
  spec: { volumes: [{ name: 'tmp', emptyDir: {} }], tolerations: [{ operator: 'Exists' }], finalizers: ['a'] },
})
const item = (more: object = {}) => ({ 'k:{"name":"tmp"}': { '.': {}, 'f:name': {}, 'f:emptyDir': {}, ...more } })
const podFields = { 'f:spec': { 'f:volumes': item(), 'f:tolerations': {}, 'f:finalizers': { 'v:"a"': {} } } }
const podsWith = (volume: object) => ({ spec: { ...(pods['spec'] as object), volumes: [{ name: 'tmp', emptyDir: {}, ...volume }] } })

test.each<readonly [text: string, is: boolean, wanted: ApiObject, found: ApiObject]>([
  ['what was applied', true, role, foundOf(role, { 'f:rules': {} })],
  ['lists by key, by value, and as one', true, pods, foundOf(pods, podFields)],
  ['a default beside it', true, pods, foundOf(pods, podFields, podsWith({ readOnly: false }))],
  ['another value', false, role, foundOf(role, { 'f:rules': {} }, { rules: [{ verbs: ['get', 'list'] }] })],
  ['a value that is now another client’s', false, role, foundOf(role, {})],
  ['a field of an earlier version', false, role, foundOf(role, { 'f:rules': {}, 'f:data': {} })],
  [
    'a field of an item of an earlier version',
    false,
    pods,
    foundOf(pods, { 'f:spec': { ...podFields['f:spec'], 'f:volumes': item({ 'f:hostPath': {} }) } }),
  ],
  [
    'an item of another client',
    false,
    pods,
    foundOf(pods, podFields, { spec: { ...(pods['spec'] as object), volumes: [{ name: 'tmp', emptyDir: {} }, { name: 'b' }] } }),
  ],
  ['what we did not apply', false, role, role],
])('%s: %s', (...[, is, wanted, found]) => {
  expect(isAppliedAlready(wanted, found)).toBe(is)
})
