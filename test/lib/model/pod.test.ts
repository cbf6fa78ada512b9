// SPDX-License-Identifier: Apache-2.0
/** Names of pods' interfaces, and shared values. Layer: test. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { endpointState } from '#lib/model/endpoint-slice.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { nameKey, refText } from '#lib/model/ref.ts'

test('an interface is named by prefix and hash, and fits the kernel’s 15 letters', () => {
  const hash = createHash('sha1').update('default.web-1').digest('hex')
  expect(workloadInterface({ namespace: 'default', name: 'web-1' })).toBe(`npl${hash.slice(0, 11)}`)
  expect(workloadInterface({ namespace: 'default', name: 'web-1' }, 'cali')).toHaveLength(15)
})

test('endpoint states are shared', () => {
  expect(endpointState(true, false, true)).toEqual({ ready: true, serving: false, terminating: true })
  expect(endpointState(true, false, true)).toBe(endpointState(true, false, true))
})

test('refs are text', () => {
  expect(refText({ kind: 'Service', namespace: 'default', name: 'web' })).toBe('Service/default/web')
  expect(refText({ kind: 'Node', namespace: '', name: 'n1' })).toBe('Node/n1')
  expect(nameKey({ namespace: '', name: 'n1' })).toBe('n1')
})
