// SPDX-License-Identifier: Apache-2.0
/** FelixConfiguration as plain JSON. Layer: test. */
import { expect, test } from 'vitest'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { felixConfiguration, model } from '../../../support/build.ts'

test('the spec is copied as it is, nulls left out', () => {
  const spec = { vxlanPort: 4790, nothing: null, bpfConntrackTimeouts: { udpTimeout: '10s', list: [1, null] } }
  expect(model(felixConfiguration('default', spec))).toEqual({
    kind: 'FelixConfiguration',
    namespace: '',
    name: 'default',
    spec: { vxlanPort: 4790, bpfConntrackTimeouts: { udpTimeout: '10s', list: [1, null] } },
  })
})

test('a field called __proto__ is a field', () => {
  const read = model({ ...felixConfiguration('node.n1', {}), spec: json('{"__proto__": {"polluted": true}}') })
  expect(read.kind === 'FelixConfiguration' && Object.keys(read.spec)).toEqual(['__proto__'])
})

test('other names and bottomless values are refused', () => {
  const deep = { a: json(`${'{"a":'.repeat(20)}1${'}'.repeat(20)}`) }
  expect(parseObject(felixConfiguration('mine', {}), { kind: 'FelixConfiguration', namespace: '', name: 'mine' })).toMatchObject({
    kind: 'rejected',
    rejected: [{ path: 'metadata.name' }],
  })
  expect(parseObject(felixConfiguration('default', deep), { kind: 'FelixConfiguration', namespace: '', name: 'default' })).toMatchObject({
    kind: 'rejected',
    rejected: [{ reason: 'is nested too deeply' }],
  })
})

function json(text: string): unknown {
  return JSON.parse(text)
}
