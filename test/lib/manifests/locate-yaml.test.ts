// SPDX-License-Identifier: Apache-2.0
/** Places in YAML. Layer: test. */
import { describe, expect, test } from 'vitest'
import { YamlPlaces } from '#lib/manifests/locate-yaml.ts'
import { lineAt, pathSteps } from '#lib/manifests/path.ts'

const text = `# a comment
kind: Service
spec:
  clusterIP: >-
    10.96.0.1
  ports:
  - port: 80
  - name: b

    "port": 99999
  flow: {a: 1,
    b: [1,
      2]}
---
kind: Other
anchored: &x
  deep: 1
? complex
: value
`
const places = new YamlPlaces(text)

describe('the line of', () => {
  test.each<[number, string, number]>([
    [0, '', 2],
    [0, 'kind', 2],
    [0, 'spec', 3],
    [0, 'spec.clusterIP', 4],
    [0, 'spec.ports', 6],
    [0, 'spec.ports[0].port', 7],
    [0, 'spec.ports[1]', 8],
    [0, 'spec.ports[1].port', 10],
    [0, 'spec.ports[1].nodePort', 8],
    [0, 'spec.ports[5]', 6],
    [0, 'spec.flow.b[1]', 13],
    [0, 'spec.missing', 3],
    [1, 'kind', 15],
    [1, 'anchored.deep', 17],
    [1, 'complex', 18],
    [7, 'kind', 1],
  ])('document %i, %j is %i', (document, path, line) => {
    expect(lineAt(text, places.locate(document, pathSteps(path)))).toBe(line)
  })
})

test('an empty document has a place too', () => {
  expect(new YamlPlaces('---\n---\na: 1\n').locate(0, ['a'])).toBe(0)
  expect(new YamlPlaces('').locate(0, ['a'])).toBe(0)
})
