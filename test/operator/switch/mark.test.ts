// SPDX-License-Identifier: Apache-2.0
/** What the operator keeps of a node's switch. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { MARK, markOf, markText, type Mark } from '#operator/switch/mark.ts'

function having(text: string): ApiObject {
  return asApiObject({
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'node.a', annotations: { [MARK]: text } },
  })
}

test.each<[Mark]>([
  [{ to: 'BPF', at: 1_700_000_000_000 }],
  [{ to: 'BPF', at: 0, uid: 'u', outside: ['192.0.2.1:30080'] }],
  [{ to: 'BPF', at: 0, uid: 'u', outside: ['192.0.2.1:30080'], from: 'b' }],
  [{ to: 'Standard', at: 0, failed: { reason: 'no answer', generation: 3, retry: '' } }],
])('a mark is read as it is written: %j', (mark) => {
  expect(markOf(having(markText(mark)))).toEqual(mark)
})

test('a long reason is cut, and what cannot be read is no mark', () => {
  const failed = { reason: 'x'.repeat(9000), generation: 1, retry: 'again' }
  expect(markOf(having(markText({ to: 'BPF', at: 0, failed })))?.failed?.reason).toHaveLength(500)
  for (const text of ['', '{', '[]', '{"to":"XDP","at":"2026-01-01T00:00:00Z"}', '{"to":"BPF","at":"now"}'])
    expect(markOf(having(text))).toBeUndefined()
})
