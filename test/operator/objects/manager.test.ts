// SPDX-License-Identifier: Apache-2.0
/** Whose an object is that another client has made. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { foreignOwner } from '#operator/objects/manager.ts'

test.each([
  [{ labels: { 'app.kubernetes.io/managed-by': 'netplane-operator' } }, undefined],
  [
    { labels: { 'app.kubernetes.io/managed-by': 'Helm' }, annotations: { 'meta.helm.sh/release-name': 'net' } },
    'Helm (meta.helm.sh/release-name: net)',
  ],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'app:x' } }, 'Argo CD (argocd.argoproj.io/tracking-id: app:x)'],
  [{ labels: { 'app.kubernetes.io/managed-by': 'terraform' } }, 'terraform (app.kubernetes.io/managed-by: terraform)'],
  [
    {
      ownerReferences: [{ apiVersion: 'helm.cattle.io/v1', kind: 'HelmChart', name: 'net', controller: true }],
      managedFields: [{ manager: 'helm-controller' }],
    },
    'HelmChart net (ownerReferences: helm.cattle.io/v1)',
  ],
  [{ managedFields: [{ manager: 'kubectl-client-side-apply' }] }, 'kubectl-client-side-apply'],
  [{}, 'another client'],
])('%j belongs to %s', (metadata, owner) => {
  expect(foreignOwner(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', ...metadata } }))).toBe(owner)
})
