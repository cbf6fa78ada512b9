// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readJsonList } from '#lib/api/decode/json-list.ts'
import { UnreadableError } from '#lib/api/errors.ts'
import { atOnce } from '#lib/base/async/slices.ts'

/** With its objects read. */
function read(text: string): unknown {
  const list = atOnce(readJsonList(Buffer.from(text)))
  return isList(list) ? { ...list, items: [...list.items] } : list
}

function isList(value: unknown): value is { readonly items: Iterable<unknown> } {
  return typeof value === 'object' && value !== null && 'items' in value && value.items instanceof Object && Symbol.iterator in value.items
}

const objects = fc.dictionary(fc.oneof(fc.string(), fc.constant('items')), fc.jsonValue({ maxDepth: 3 }))

describe('a list as JSON', () => {
  test('is read as JSON is, wherever its objects stand and whatever their texts are', () => {
    fc.assert(
      fc.property(
        fc.array(objects, { maxLength: 4 }),
        fc.tuple(objects, objects),
        fc.constantFrom(undefined, 2, '\t'),
        (items, [before, after], space) => {
          const list = { a: 'items', b: { items: [{}] }, metadata: before, items, ['z"items"']: after, z: ['items', { items: [] }] }
          const text = JSON.stringify(list, undefined, space)
          expect(read(text)).toEqual(JSON.parse(text))
        },
      ),
    )
  })

  test('is none where its end is missing', () => {
    const text = JSON.stringify({ items: [{ name: 'a"]}' }, { name: '\\' }], metadata: { resourceVersion: '7' } })
    expect(read(text)).toEqual(JSON.parse(text))
    for (let length = 0; length < text.length; length++) expect(read(text.slice(0, length))).toBeUndefined()
  })

  test.each(['', 'no', '[]]', '{"items":[{}]}}', '{"items":[{]}}', '{"items":[{}],"metadata":}'])('is none of %j', (text) => {
    expect(read(text)).toBeUndefined()
  })

  test.each(['{"items":null,"metadata":{}}', '{"items":{"a":[]}}', '{"kind":"Status","code":410}', '[{"items":[]}]', '7'])(
    'may have no objects: %s',
    (text) => {
      expect(read(text)).toEqual(JSON.parse(text))
    },
  )

  test('with an object that is no JSON is unreadable, and the objects before it are there', () => {
    const list = atOnce(readJsonList(Buffer.from('{"items":[{"a":1},{"a":},{"a":3}]}')))
    const seen: unknown[] = []
    if (!isList(list)) throw new Error('no list')
    expect(() => {
      for (const item of list.items) seen.push(item)
    }).toThrow(UnreadableError)
    expect(seen).toEqual([{ a: 1 }])
  })

  test('gives others a turn for each of its long objects', () => {
    const items = Array.from({ length: 10 }, () => ({ text: 'x'.repeat(1_000_000) }))
    const work = readJsonList(Buffer.from(JSON.stringify({ items })))
    let turns = 0
    while (work.next().done !== true) turns++
    // a text is one step
    expect(turns).toBeGreaterThanOrEqual(10)
  })
})
