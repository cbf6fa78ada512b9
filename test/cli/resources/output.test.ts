// SPDX-License-Identifier: Apache-2.0
/** Objects as they are shown. Layer: test. */
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { readFormat } from '../../../cli/resources/format.ts'
import { parsePath, valuesAt } from '../../../cli/resources/json-path.ts'
import { ALL_RESOURCES, apiVersionOf, resourceOf } from '../../../cli/resources/kinds.ts'
import { showText, yamlText } from '../../../cli/resources/output.ts'

const NOW = Date.parse('2026-11-26T12:00:00Z')

function object(kind: string, metadata: object, rest: object = {}): ApiObject {
  const resource = resourceOf(kind, ALL_RESOURCES)
  return asApiObject({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, ...rest })
}

function show(objects: readonly ApiObject[], format?: string, allNamespaces = false): string {
  const resource = resourceOf(objects[0]?.kind ?? '', ALL_RESOURCES)
  return showText([{ resource, objects }], { format: readFormat(format), allNamespaces, isOne: false, now: NOW })
}

test.each([
  ['.a.b', [1]],
  ['a.b', [1]],
  ['{.a.b}', [1]],
  ['$.a.b', [1]],
  ['.list[0].n', ['x']],
  ['.list[-1].n', ['y']],
  ['.list[*].n', ['x', 'y']],
  ['.list[?(@.t=="two")].n', ['y']],
  [".labels['a.b/c']", ['d']],
  ['.labels.a\\.b/c', ['d']],
  ['.none.b', []],
  ['.list[7].n', []],
  ['.a[0]', []],
  ['.null', []],
  ['.a.__proto__.x', []],
])('%s leads to %j', (path, values) => {
  const value = {
    a: { b: 1 },
    list: [
      { n: 'x', t: 'one' },
      { n: 'y', t: 'two' },
    ],
    labels: { 'a.b/c': 'd' },
    null: null,
  }
  expect(valuesAt(value, parsePath(path))).toEqual(values)
})

test('every column of every kind has a path that can be read', () => {
  for (const { columns } of ALL_RESOURCES) for (const { path } of columns) expect(parsePath(path).length).toBeGreaterThan(0)
})

test('a table has the columns of the kind, more of them when it is wide, and namespaces of all', () => {
  const pools = [
    object('ippool', { name: 'p', creationTimestamp: '2026-11-23T12:00:00Z' }, { spec: { cidr: '10.0.0.0/16', natOutgoing: true } }),
    object(
      'ippool',
      { name: 'longer', creationTimestamp: '2026-11-26T11:58:30Z' },
      { spec: { cidr: 'fd00::/48', disabled: true, vxlanMode: 'Always' } },
    ),
  ]
  expect(show(pools)).toBe(
    'NAME    CIDR         VXLAN   NAT   AGE\np       10.0.0.0/16  -       true  3d\nlonger  fd00::/48    Always  -     90s\n',
  )
  expect(show(pools, 'wide').split('\n')[2]).toMatch(/^longer +fd00::\/48 +Always +- +true +- +- +90s$/)
  expect(show([object('np', { name: 'a', namespace: 'shop' }, { spec: { order: 0 } })], undefined, true)).toBe(
    'NAMESPACE  NAME  TIER  ORDER  SELECTOR  AGE\nshop       a     -     0      -         \n'.replace(/ +\n$/, '\n'),
  )
})

test('conditions of a component are columns, one of them since when', () => {
  const conditions = [
    { type: 'Degraded', status: 'False' },
    { type: 'Available', status: 'True', lastTransitionTime: '2026-11-26T09:00:00Z' },
  ]
  expect(show([object('netplanestatus', { name: 'network' }, { status: { message: 'all is well', conditions } })])).toMatch(
    /^NAME +AVAILABLE +PROGRESSING +DEGRADED +SINCE +MESSAGE +AGE\nnetwork +True +- +False +3h +all is well\n$/,
  )
})

test('columns are chosen by heading or path', () => {
  const sets = [object('gns', { name: 'a', labels: { x: 'y' } }, { spec: { nets: ['10.0.0.1', '10.0.0.2'] } })]
  expect(show(sets, 'custom-columns=name,Nets,FIRST:.spec.nets[0],ALL:.metadata.labels')).toBe(
    'NAME  NETS               FIRST     ALL\na     10.0.0.1,10.0.0.2  10.0.0.1  {"x":"y"}\n',
  )
  expect(() => show(sets, 'custom-columns=FOO')).toThrow('GlobalNetworkSet: column "FOO" is none of NAMESPACE, NAME, NETS, AGE')
})

test('what YAML could take for something else is quoted, and comes back as it was', () => {
  const texts = ['yes', 'no', 'on', '1:30', '012', '1e3', '0x1f', 'null', '~', '2026-01-01', 'a: b', '#x', '', '=', '<<', '1_000']
  expect(load(yamlText({ texts }))).toEqual({ texts })
  // those that only older versions take for numbers or flags
  expect(yamlText({ texts: ['yes', '1:30', '012'] })).toBe("texts:\n  - 'yes'\n  - '1:30'\n  - '012'\n")
})
