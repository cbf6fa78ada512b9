// SPDX-License-Identifier: Apache-2.0
/** A workload that an older version has made keeps its selector. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { keepSelector } from '#lib/render/kept-selector.ts'

function workload(selector: object | undefined, labels: object = {}): ApiObject {
  const spec = {
    ...(selector && { selector }),
    template: { metadata: { labels, annotations: { note: 'kept' } }, spec: { hostNetwork: true } },
  }
  return asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'netplane-node' }, spec })
}

const OURS = { 'app.kubernetes.io/name': 'netplane-node' }
const OLD = { 'k8s-app': 'netplane-node' }
const rendered = workload({ matchLabels: OURS }, OURS)

test('a workload that is not there yet has the selector that is rendered', () => {
  expect(keepSelector(rendered, undefined)).toBe(rendered)
})

test('one with the selector that is rendered is as it is rendered', () => {
  expect(keepSelector(rendered, workload({ matchLabels: OURS }))).toBe(rendered)
})

test('one with another selector keeps it, and its pods have the labels of both', () => {
  expect(keepSelector(rendered, workload({ matchLabels: OLD }))).toEqual(workload({ matchLabels: OLD }, { ...OURS, ...OLD }))
})

test('an object without a selector is as it is rendered', () => {
  const role = asApiObject({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'netplane-node' },
    rules: [],
  })
  expect(keepSelector(role, role)).toBe(role)
})
