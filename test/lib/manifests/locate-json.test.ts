// SPDX-License-Identifier: Apache-2.0
/** Places in JSON. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jsonErrorAt, locateInJson } from '#lib/manifests/locate-json.ts'
import { lineAt, pathSteps } from '#lib/manifests/path.ts'

const text = `{
  "kind": "Service", "other": "ports",
  "spec": {
    "escaped\\u0041\\"": {"x": 1},
    "ports": [
      { "port": 80 },
      { "name": "b",
        "port": 99999 }
    ]
  }
}`

describe('the line of', () => {
  test.each<[string, number]>([
    ['', 1],
    ['kind', 2],
    ['spec', 3],
    ['spec.ports', 5],
    ['spec.ports[0]', 6],
    ['spec.ports[1]', 7],
    ['spec.ports[1].port', 8],
    ["spec['escapedA\"'].x", 4],
    ['spec.ports[1].nodePort', 7],
    ['spec.ports[7]', 5],
    ['spec.nothing.at.all', 3],
    ['kind.of.text', 2],
  ])('%j is %i', (path, line) => {
    expect(lineAt(text, locateInJson(text, pathSteps(path)))).toBe(line)
  })
})

test('a path is read as its steps', () => {
  expect(pathSteps("a.b[10].c['d.e/f'][0]")).toEqual(['a', 'b', 10, 'c', 'd.e/f', 0])
})

test('valid is what the platform takes; elsewhere the offender is found', () => {
  const nearly = fc.oneof(
    fc.json(),
    fc.string({
      unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '1', '-', '.', 'e', 't', 'true', 'null', ' ', '\n', '\\', '\\u12', 'a'),
      maxLength: 12,
    }),
    fc
      .tuple(fc.json(), fc.nat(40), fc.constantFrom('', '"', '}', ',', 'x'))
      .map(([json, at, by]) => json.slice(0, at) + by + json.slice(at + 1)),
  )
  fc.assert(
    fc.property(nearly, (some) => {
      expect(jsonErrorAt(some) === undefined).toBe(isJson(some))
    }),
    { numRuns: 3_000 },
  )
})

function isJson(some: string): boolean {
  try {
    JSON.parse(some)
    return true
  } catch {
    return false
  }
}

test('every value is found where it stands', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.array(fc.integer(), { maxLength: 3 }), { minKeys: 1, maxKeys: 5 }),
      fc.nat(),
      (value, pick) => {
        const keys = Object.keys(value)
        const key = keys[pick % keys.length] ?? ''
        const printed = JSON.stringify(value, undefined, 2)
        expect(printed.slice(locateInJson(printed, [key])).startsWith(JSON.stringify(key))).toBe(true)
        const list = value[key] ?? []
        if (list.length > 0) expect(printed.slice(locateInJson(printed, [key, list.length - 1])).startsWith(String(list.at(-1)))).toBe(true)
      },
    ),
  )
})
