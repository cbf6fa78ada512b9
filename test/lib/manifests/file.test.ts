// SPDX-License-Identifier: Apache-2.0
/** Files as operators see them: what is wrong, by file, line and field. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rejectedText } from '#lib/base/result.ts'
import { parseFile, placeFinder } from '#lib/manifests/file.ts'
import { refText } from '#lib/model/ref.ts'
import { service } from '../../support/build.ts'

const services = `apiVersion: v1
kind: Service
metadata:
  name: good
spec:
  clusterIP: 10.96.0.1
  ports:
  - port: 80
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  clusterIP: 10.96.0.2
  ports:
  - name: http
    port: 99999
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: whatever}
---
apiVersion: v1
kind: Service
metadata:
  name: good
`

function show(name: string, text: string): { objects: string[]; problems: string[]; unsure: boolean; unusable: string[] } {
  const content = parseFile(name, text)
  const problems = content.problems.map(({ place, rejected }) => `${place ?? ''}: ${rejectedText(rejected)}`)
  return { objects: content.objects.map(refText), problems, unsure: content.unsure, unusable: [...content.unusable.keys()] }
}

describe('problems are reported by file, line and field', () => {
  test('in YAML', () => {
    expect(show('services.yaml', services)).toEqual({
      objects: ['Service/default/good'],
      problems: [
        'services.yaml:18: Service default/web: spec.ports[0].port: must be 1..65535',
        'services.yaml:24: Service default/good: is already defined in services.yaml',
      ],
      unsure: false,
      unusable: ['Service/default/web'],
    })
  })

  test('in a JSON list', () => {
    const list = {
      kind: 'List',
      apiVersion: 'v1',
      items: [
        service('a'),
        service('b', { ports: [{ port: 80, protocol: 'SCTP' }] }),
        { kind: 'Service', apiVersion: 'v1' },
        { kind: 'Pod', apiVersion: 'v2', metadata: { name: 'p' } },
      ],
    }
    const text = JSON.stringify(list, undefined, 1)
    const lineOf = (part: string): number => text.slice(0, text.indexOf(part)).split('\n').length
    expect(show('sub/all.json', text)).toEqual({
      objects: ['Service/default/a', 'Service/default/b'],
      problems: [
        `sub/all.json:${lineOf('"protocol": "SCTP"')}: Service default/b: spec.ports[0].protocol: SCTP is not supported`,
        `sub/all.json:${text.split('\n').findIndex((line, at, lines) => line.includes('"kind": "Service"') && lines[at + 1]?.includes('"apiVersion": "v1"') === true && lines[at + 2]?.includes('}') === true)}: metadata.name: is missing`,
        `sub/all.json:${lineOf('"apiVersion": "v2"')}: Pod default/p: apiVersion: must be v1`,
      ],
      unsure: true,
      unusable: ['Pod/default/p'],
    })
  })

  test('when it is no YAML or JSON at all', () => {
    expect(show('a.yaml', 'kind: Service\nspec: [\n')).toMatchObject({
      objects: [],
      unsure: true,
      problems: [expect.stringMatching(/^a\.yaml:\d: is not valid YAML: /)],
    })
    expect(show('a.json', '{"kind":\n')).toMatchObject({ unsure: true, problems: ['a.json:2: ends in the middle of JSON'] })
  })

  test('a file full of errors gets lines for the first ones', () => {
    const text = JSON.stringify({ kind: 'List', items: Array.from({ length: 30 }, (_, at) => service(`s${at}`, { ports: [{ port: 0 }] })) })
    const { problems } = show('a.json', text)
    expect([problems.length, problems[0]?.startsWith('a.json:1: '), problems[29]?.startsWith('a.json: ')]).toEqual([30, true, true])
  })
})

test('a place can be asked for later', () => {
  const places = placeFinder('services.yaml', services)
  expect(places({ ref: 'Service/default/good', path: 'spec.ports[0].port', reason: '' })).toBe('services.yaml:8')
  expect(places({ ref: 'Service/default/none', path: '', reason: '' })).toBe('services.yaml')
  expect(placeFinder('a.yaml', '[')({ ref: 'Service/default/none', path: '', reason: '' })).toBe('a.yaml')
})

test('no text makes the reading of a file throw', () => {
  const piece = fc.constantFrom(
    'kind: Service\n',
    'apiVersion: v1\n',
    'metadata: {name: a}\n',
    'metadata:\n',
    '  name: a\n',
    '---\n',
    '- a\n',
    '  ',
    '\t',
    '&a ',
    '*a\n',
    '<<: *a\n',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    ':',
    '!!binary x\n',
    '!x y\n',
    '? ',
    '| ',
    '> ',
    '%YAML 1.1\n',
    '...\n',
    '\u0000',
    '\ud800',
    'kind: List\nitems: [1, null, {}]\n',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.constantFrom('a.yaml', 'a.json'), (pieces, name) => {
      parseFile(name, pieces.join(''))
    }),
    { numRuns: 3_000 },
  )
})
