// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { eventNamed, eventObject, readEvent, type Notice } from '#lib/kube/objects/events.ts'

const WARNING: Notice = {
  type: 'Warning',
  involved: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: 'u' },
  reason: 'Refused',
  message: 'spec: bad',
  component: 'c',
  host: 'n1',
}

test('the same warning is the same event on every node, and no other warning is', () => {
  const { involved } = WARNING
  const name = eventNamed(WARNING).name
  expect(name).toMatch(/^web\.[0-9a-f]{16}$/)
  expect(eventNamed({ ...WARNING, host: 'n2', component: 'd' }).name).toBe(name)
  const others = [{ reason: 'x' }, { message: 'x' }, { involved: { ...involved, uid: 'v' } }, { involved: { ...involved, kind: 'Pod' } }]
  expect(new Set(others.map((other) => eventNamed({ ...WARNING, ...other }).name).concat(name)).size).toBe(5)
})

test('what is in no namespace has its events in the default one', () => {
  const involved = { ...WARNING.involved, namespace: undefined }
  expect(eventObject({ ...WARNING, involved }, 0).metadata.namespace).toBe('default')
})

test('long messages are cut, long names too', () => {
  const involved = { ...WARNING.involved, name: 'a'.repeat(253) }
  const { metadata, message } = eventObject({ ...WARNING, involved, message: 'x'.repeat(5000) }, 0)
  expect([metadata.name.length <= 253, message.length <= 1024]).toEqual([true, true])
})

test('a name that is cut ends as names may', () => {
  for (const end of ['-', '.', '--', '.-']) {
    const involved = { ...WARNING.involved, name: `${'a'.repeat(200 - end.length)}${end}b` }
    expect(eventNamed({ ...WARNING, involved }).name).toMatch(/^a+\.[0-9a-f]{16}$/)
  }
})

test('an event is read as it was written', () => {
  expect(readEvent(eventObject(WARNING, 1_700_000_000_000))).toEqual({ count: 1, at: 1_700_000_000_000 })
})

test("others' events may say less", () => {
  expect(readEvent({ metadata: { creationTimestamp: '2026-01-01T00:00:00Z' } })).toEqual({ count: 1, at: Date.UTC(2026, 0, 1) })
  expect(readEvent({})).toEqual({ count: 1, at: 0 })
})
