// SPDX-License-Identifier: Apache-2.0
/** Which definitions an earlier version leaves. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { allDefinitions, isOfNewer, madeBy } from '#lib/render/definitions.ts'
import { MANIFESTS } from '#lib/render/manifests.ts'
import { felixSchema } from '#agent/config/open-api.ts'

const definitions = allDefinitions(felixSchema())

test('one of a later version is newer; one of the same, of an earlier, and one that says nothing is not', () => {
  for (const definition of definitions) {
    const made = madeBy(definition, '3.31.6')
    expect(['3.31.5', '3.30.9', '3.31.6', '3.31.7', '3.32.0'].map((version) => isOfNewer(made, version))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
    expect(isOfNewer(madeBy(definition, 'main'), '3.31.5')).toBe(false)
    expect(isOfNewer({ ...made, metadata: { name: made.metadata.name } }, '3.31.5')).toBe(false)
    expect(isOfNewer(madeBy(definition, packageVersion()), packageVersion())).toBe(false)
  }
})

test.each(MANIFESTS)('all of %s.yaml has the label by which it is applied without its definitions, and they have not', (name) => {
  const objects = loadAll(readFileSync(join(packageRoot(), `deploy/manifests/${name}.yaml`), 'utf8')).map(asApiObject)
  const labelled = objects.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'netplane')
  expect(labelled).toEqual(objects.filter(({ kind }) => kind !== 'CustomResourceDefinition'))
})
