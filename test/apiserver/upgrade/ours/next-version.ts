// SPDX-License-Identifier: Apache-2.0
/** The version that comes after this one: the same programs, that call themselves so, and definitions with a field that
 * this one does not know. Layer: test. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { textAt } from '../../../../lab/raw.ts'

export const NEXT = '3.31.6'

/** Its package, made below a folder. */
export function nextPackage(folder: string): string {
  const into = join(folder, 'next')
  mkdirSync(into)
  const root = packageRoot()
  cpSync(join(root, 'dist'), join(into, 'dist'), { recursive: true })
  for (const name of ['node_modules', 'deploy', 'docs', 'bpf', 'build']) symlinkSync(join(root, name), join(into, name))
  const text = readFileSync(join(root, 'package.json'), 'utf8')
  writeFileSync(join(into, 'package.json'), text.replace('"version": "3.31.5"', `"version": "${NEXT}"`))
  return into
}

const DEFINITIONS = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }

/** `spec.later` of these kinds, which that version's definitions have. */
export async function addField(client: ApiClient, kinds: readonly string[]): Promise<void> {
  for (const definition of await client.list(DEFINITIONS)) {
    if (!kinds.includes(textAt(definition, 'spec.names.kind') ?? '')) continue
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later'
    await client.patch(namedOf(definition), [{ op: 'add', path, value: { type: 'string' } }], { type: 'json' })
  }
}

/** "tiers.netplane.io 17": what would change if one were written. */
export async function definitionVersions(client: ApiClient): Promise<readonly string[]> {
  const all = await client.list(DEFINITIONS)
  return all.map(({ metadata }) => `${metadata.name} ${String(metadata['generation'])}`).sort()
}
