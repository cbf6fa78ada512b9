// SPDX-License-Identifier: Apache-2.0
/** What is deleted of an older installation, and what never is. Layer: test. */
import { expect, test } from 'vitest'
import { obsoleteObjects } from '#upgrade/plan/obsolete.ts'
import type { Found } from '#upgrade/found/found.ts'
import { namedText } from '#upgrade/steps/object-text.ts'
import { object } from '../found/installed.ts'

const AGENTS = 'DaemonSet kube-system/netplane-node'

function names(method: Found['method'], name: string): readonly string[] {
  const daemonSet = object('apps/v1 DaemonSet', name)
  return obsoleteObjects({ method, daemonSet }, [daemonSet]).map(namedText)
}

test('a manifest leaves typha and its config map behind, and its own DaemonSet stays', () => {
  const obsolete = names('manifest', 'kube-system/netplane-node')
  expect(obsolete).toContain('Deployment kube-system/netplane-typha')
  expect(obsolete).toContain('ConfigMap kube-system/netplane-config')
  expect(obsolete).not.toContain(AGENTS)
})

test('where flannel was not part of it, nothing called canal or flannel is deleted', () => {
  for (const method of ['manifest', 'operator', 'chart'] as const)
    expect(names(method, 'kube-system/netplane-node').filter((name) => /canal|flannel/.test(name))).toEqual([])
})

test('where flannel was part of it, its account and its config map go', () => {
  const obsolete = names('manifest', 'kube-system/canal')
  expect(obsolete).toContain('ServiceAccount kube-system/canal')
  expect(obsolete).toContain('ConfigMap kube-system/canal-config')
  expect(obsolete).not.toContain('DaemonSet kube-system/canal')
})

test('an operator leaves nothing behind in kube-system', () => {
  const obsolete = names('operator', 'netplane-system/netplane-node')
  expect(obsolete).toContain('Deployment netplane-system/netplane-typha')
  expect(obsolete.filter((name) => name.includes('kube-system'))).toEqual([])
})
