// SPDX-License-Identifier: Apache-2.0
/** Whose an object says that it is. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { declaredManagers, managerText } from '#lib/control/declared-managers.ts'

test.each<readonly [object, readonly string[]]>([
  [{}, []],
  [{ labels: { 'app.kubernetes.io/managed-by': 'kops' } }, ['kops (app.kubernetes.io/managed-by: kops)']],
  [{ labels: { 'addonmanager.kubernetes.io/mode': 'Reconcile' } }, ['the addon manager (addonmanager.kubernetes.io/mode: Reconcile)']],
  [
    { annotations: { 'objectset.rio.cattle.io/owner-name': 'net' } },
    ['the addon controller of k3s (objectset.rio.cattle.io/owner-name: net)'],
  ],
  [
    { labels: { 'helm.toolkit.fluxcd.io/name': 'net' }, annotations: { 'meta.helm.sh/release-name': 'net' } },
    ['Flux (helm.toolkit.fluxcd.io/name: net)', 'Helm (meta.helm.sh/release-name: net)'],
  ],
  [
    { ownerReferences: [{ apiVersion: 'k3s.cattle.io/v1', kind: 'Addon', name: 'kube-proxy', controller: true }], labels: { a: 'b' } },
    ['Addon kube-proxy (ownerReferences: k3s.cattle.io/v1)'],
  ],
  [
    {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'settings' },
        { apiVersion: 'helm.cattle.io/v1', kind: 'HelmChart', name: 'net', controller: true },
      ],
      labels: { 'app.kubernetes.io/managed-by': 'Helm' },
    },
    ['HelmChart net (ownerReferences: helm.cattle.io/v1)', 'Helm (app.kubernetes.io/managed-by: Helm)'],
  ],
  [{ ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a', controller: false }] }, []],
])('%j says %j', (metadata, managers) => {
  const object = asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'x', ...metadata } })
  expect(declaredManagers(object).map(managerText)).toEqual(managers)
})
