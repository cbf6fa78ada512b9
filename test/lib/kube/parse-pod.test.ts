// SPDX-License-Identifier: Apache-2.0
/** Pods. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { parseObject } from '#lib/kube/parse-core.ts'
import { model, pod } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

test('a pod is read', () => {
  expect(model(pod('shop/web-1', { node: 'n1', ips: ['10.0.0.1', 'fd00::1'], hostNetwork: true, terminating: true }))).toEqual({
    kind: 'Pod',
    namespace: 'shop',
    name: 'web-1',
    nodeName: 'n1',
    podIPs: [parseAddr('10.0.0.1'), parseAddr('fd00::1')],
    hostNetwork: true,
    phase: 'Running',
    terminating: true,
  })
})

test('a hand-written one may say little', () => {
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, status: { podIP: '10.0.0.1' } })).toMatchObject({
    namespace: 'default',
    nodeName: undefined,
    podIPs: [parseAddr('10.0.0.1')],
    phase: 'Pending',
    hostNetwork: false,
    terminating: false,
  })
})

test.each<[Manifest, string, string]>([
  [{ status: { podIP: 'x' } }, 'status.podIP', 'must be an IP address'],
  [{ status: { podIPs: [{ ip: '10.0.0.1' }, { ip: 'x' }] } }, 'status.podIPs[1].ip', 'must be an IP address'],
  [{ status: { podIPs: [{}] } }, 'status.podIPs[0].ip', 'is missing'],
  [{ status: { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] } }, 'status.podIPs', 'must be at most one of each family'],
  [{ status: { phase: 'Sleeping' } }, 'status.phase', 'must be Pending or Running or Succeeded or Failed or Unknown'],
  [{ spec: { hostNetwork: 1 } }, 'spec.hostNetwork', 'must be true or false'],
  [{ spec: { nodeName: 1 } }, 'spec.nodeName', 'must be text'],
])('%j is refused', (manifest, path, reason) => {
  expect(parseObject(manifest, { kind: 'Pod', namespace: 'default', name: 'a' })).toEqual({
    kind: 'rejected',
    rejected: [{ ref: 'Pod/default/a', path, reason }],
  })
})
