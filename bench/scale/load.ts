// SPDX-License-Identifier: Apache-2.0
/** Puts a large cluster into a real API server. Layer: bench. */
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { mustRun } from '../../lab/processes/command.ts'
import { isDefinition, listOf, manifest } from '../../testkit/kubernetes/manifest.ts'
import { statusOf } from './objects.ts'

/** What a server of two processors has in hand at a time without making a client wait. */
const AT_ONCE = 64

/** Our kinds, and FelixConfiguration with these settings. */
export async function define(client: ApiClient, kubectl: readonly string[], settings: Readonly<Record<string, unknown>>): Promise<void> {
  await mustRun([...kubectl, 'apply', '--server-side', '-f', '-'], { input: listOf(manifest().filter(isDefinition)) })
  await mustRun([...kubectl, 'wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  await client.create({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' }, spec: settings })
}

/** How many objects these are. What others are in comes first, and is a handful. */
export async function load(client: ApiClient, objects: Generator<ApiObject>): Promise<number> {
  let made = 0
  const worker = async (): Promise<void> => {
    for (const object of objects) {
      await create(client, object)
      made++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return made
}

async function create(client: ApiClient, object: ApiObject): Promise<void> {
  await client.create(object)
  const status = statusOf(object)
  if (status !== undefined) await client.patch(namedOf(object), { status }, { type: 'merge', subresource: 'status' })
}
