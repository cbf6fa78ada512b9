// SPDX-License-Identifier: Apache-2.0
/** Objects before any server sees them. Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { rejectedText } from '#lib/base/result.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { checkObject } from '../../../cli/resources/check.ts'
import { V3_RESOURCES } from '../../../cli/resources/kinds.ts'

const V3 = 'netplane.io/v3'
const OPTIONS = { namespace: 'here', namesOnly: false }

function problems(value: unknown, namesOnly = false): readonly string[] {
  return checkObject(value, { ...OPTIONS, namesOnly }).rejected.map(rejectedText)
}

function v3(kind: string, spec: unknown, metadata: object = { name: 'default' }): object {
  return { apiVersion: V3, kind, metadata, spec }
}

test.each([
  [7, 'must be an object'],
  [{}, 'kind: is missing'],
  [{ kind: 'Tier' }, 'Tier: apiVersion: is missing'],
  [{ kind: 'Tier', apiVersion: V3 }, 'Tier: metadata.name: is missing'],
  [
    { kind: 'Teir', apiVersion: V3, metadata: { name: 'a' } },
    'Teir a: kind: there is no such kind of netplane.io/v3: Teir of netplane.io/v3',
  ],
  [
    { kind: 'NetworkPolicy', apiVersion: 'networking.k8s.io/v1', metadata: { name: 'a' } },
    'NetworkPolicy a: kind: there is no such kind of netplane.io/v3: NetworkPolicy of networking.k8s.io/v1',
  ],
  [{ kind: 'Tier', apiVersion: 'netplane.io/v2', metadata: { name: 'a' } }, 'Tier a: apiVersion: must be netplane.io/v3'],
  [v3('Tier', {}, { name: 'A' }), 'Tier A: metadata.name: must be lower-case letters, digits, "-" and "."'],
  [v3('Tier', {}, { name: 'a', namespace: 'b' }), 'Tier b/a: metadata.namespace: a Tier has none'],
  [v3('Tier', {}, { name: 'a', labels: { zone: 1 } }), "Tier a: metadata.labels['zone']: must be text"],
  [{ ...v3('Tier', {}), specs: {} }, 'Tier default: specs: there is no such field'],
  [v3('Tier', { order: 1 }), 'Tier default: spec.order: must be 1000000 in this tier'],
  [v3('NetworkPolicy', { selctor: '' }), 'NetworkPolicy here/default: spec.selctor: is not a field that is understood here'],
  [v3('FelixConfiguration', { vxlanPort: 'x' }), 'FelixConfiguration default: spec.vxlanPort: must be 1..65535'],
  [v3('FelixConfiguration', {}, { name: 'n1' }), 'FelixConfiguration n1: metadata.name: must be default or node.<name>'],
  [
    v3('ControllersConfiguration', { controllers: { node: { syncLabels: 1 } } }),
    'ControllersConfiguration default: spec.controllers.node.syncLabels: must be text',
  ],
  [v3('ControllersConfiguration', {}, { name: 'x' }), 'ControllersConfiguration x: metadata.name: must be default'],
  [v3('ClusterInformation', { datastoreReady: 'no' }), 'ClusterInformation default: spec.datastoreReady: must be true or false'],
  [v3('IPAMBlock', { cidr: '10.0.0.0/26' }), 'IPAMBlock default: spec.node: is missing'],
])('%j: %s', (value, problem) => {
  expect(problems(value)).toEqual([problem])
})

test('of what is to be deleted the name counts alone', () => {
  expect(problems(v3('NetworkPolicy', { selctor: '' }), true)).toEqual([])
  expect(problems(v3('Tier', {}, { name: 'A' }), true)).toHaveLength(1)
})

test('an object gets its namespace, and loses its status', () => {
  const { object } = checkObject({ ...v3('NetworkSet', {}), status: { x: 1 } }, OPTIONS)
  expect(object).toEqual({ ...v3('NetworkSet', {}), metadata: { name: 'default', namespace: 'here' } })
  expect(checkObject(v3('NetworkSet', {}, { name: 'a', namespace: 'there' }), OPTIONS).object?.metadata.namespace).toBe('there')
})

test('every kind refuses a field that it does not have', () => {
  const unchecked = V3_RESOURCES.filter(({ kind }) => problems(v3(kind, { fieldThatIsNotThere: true })).length === 0)
  // what agents of other versions say besides is theirs
  expect(unchecked.map(({ kind }) => kind)).toEqual(['NodeNetwork'])
})

test('the examples are without a fault', () => {
  const folder = join(packageRoot(), 'deploy/examples')
  const objects = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => {
      const read = readManifest(name, readFileSync(join(folder, name), 'utf8'))
      return read.kind === 'ok' ? read.objects.map(({ value }) => value) : []
    })
    .filter((value) => JSON.stringify(value).includes(`"apiVersion":"${V3}"`))
  expect(objects.length).toBeGreaterThan(1)
  expect(objects.flatMap((value) => problems(value))).toEqual([])
})
