// SPDX-License-Identifier: Apache-2.0
/** Manifest texts: documents, lists, and where they are broken. Layer: test. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { isManifestName, readManifest } from '#lib/manifests/read.ts'

describe('objects of', () => {
  test.each<[string, string, unknown]>([
    ['JSON', '{"kind": "Service"}', [{ value: { kind: 'Service' }, document: 0, path: [] }]],
    [
      'a JSON List',
      '{"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}',
      [
        { value: { kind: 'A' }, document: 0, path: ['items', 0] },
        { value: { kind: 'B' }, document: 0, path: ['items', 1] },
      ],
    ],
    [
      'the API’s own list',
      '{"kind": "ServiceList", "apiVersion": "v1", "items": [{"metadata": {}}]}',
      [{ value: { kind: 'Service', apiVersion: 'v1', metadata: {} }, document: 0, path: ['items', 0] }],
    ],
    ['a list that is none', '{"kind": "List"}', [{ value: { kind: 'List' }, document: 0, path: [] }]],
    ['nothing', 'null', []],
  ])('%s', (_, text, objects) => {
    expect(readManifest('a.json', text)).toEqual({ kind: 'ok', objects })
  })

  test('YAML: several documents, empty ones, anchors, merges, no magic words', () => {
    const text = [
      '# nothing yet',
      '---',
      'kind: A',
      'on: yes',
      'when: 2026-01-01',
      '---',
      '---',
      'base: &base {a: 1}',
      'more: {<<: *base, b: 0x10}',
      '',
    ].join('\n')
    expect(readManifest('a.yaml', text)).toEqual({
      kind: 'ok',
      objects: [
        { value: { kind: 'A', on: 'yes', when: '2026-01-01' }, document: 0, path: [] },
        { value: { base: { a: 1 }, more: { a: 1, b: 16 } }, document: 2, path: [] },
      ],
    })
  })

  test('nothing at all', () => {
    expect(readManifest('a.yml', '')).toEqual({ kind: 'ok', objects: [] })
  })
})

describe('broken', () => {
  test.each<[string, string, { readonly line?: number; readonly reason?: string }]>([
    ['a.json', '{\n "a": 1,\n "b": tru\n}', { line: 3, reason: 'is not valid JSON at "tru\\n}"' }],
    ['a.json', '{"a": [1, 2}', { line: 1, reason: 'is not valid JSON at "}"' }],
    ['a.json', '{"a": 1}\n{"b": 2}', { line: 2, reason: 'is not valid JSON at "{\\"b\\": 2}"' }],
    ['a.json', '{"a": {"b": 1', { line: 1, reason: 'ends in the middle of JSON' }],
    ['a.json', '', { reason: 'is empty' }],
    ['a.yaml', 'a: 1\nb: [1, 2\nc: 3\n', {}],
    ['a.yaml', 'a: 1\n\tb: 2\n', {}],
    ['a.yaml', 'a: 1\na: 2\n', { line: 2 }],
    ['a.yaml', 'a: *nowhere\n', { line: 1 }],
  ])('%s %j', (name, text, { line, reason }) => {
    const read = readManifest(name, text)
    if (read.kind !== 'broken') throw new Error('was read')
    if (reason !== undefined) expect(read.reason).toBe(reason)
    else expect(read.reason).toMatch(/^is not valid YAML: ./)
    if (line !== undefined) expect(read.line).toBe(line)
    else if (name === 'a.yaml') expect(read.line).toBeGreaterThan(1)
  })
})

test('texts of YAML are copies: a small value does not keep its file in memory', () => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  const used = (): number => {
    if (typeof collect === 'function') Reflect.apply(collect, undefined, [])
    return getHeapStatistics().used_heap_size
  }
  const read = (at: number) => readManifest('a.yaml', `# ${'x'.repeat(10_000_000)}${at}\nname: a-name-that-is-long-enough\n`)
  read(0)
  const before = used()
  const kept = [1, 2, 3].map(read)
  expect(used() - before).toBeLessThan(5_000_000)
  expect(kept[2]).toMatchObject({ objects: [{ value: { name: 'a-name-that-is-long-enough' } }] })
})

test('manifests are known by the ends of their names', () => {
  expect(['a.yaml', 'a.yml', 'a.json', 'a.b.json'].every(isManifestName)).toBe(true)
  expect(['a.txt', 'a.yaml~', 'a.json.tmp', '.a.yaml.swp', 'yaml', '..data', ''].some(isManifestName)).toBe(false)
})
