// SPDX-License-Identifier: Apache-2.0
/** What is read of older installations, in a real API server with the definitions of deploy/. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, collectionPath, namedOf } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { readInstallation } from '#upgrade/stored/installation.ts'
import { STORED_KINDS } from '#upgrade/stored/kinds.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { fixture, fixtureNames } from '../../upgrade/stored/installation.ts'
import { define } from '../definitions.ts'

const BUILD_MS = 30 * 60_000
const CARRIED = [...STORED_KINDS.filter(({ reading }) => reading.how === 'carried').map(({ kind }) => kind), 'IPAMBlock']

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-stored-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, ...CARRIED)
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }))
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Undefined when it is accepted. Nothing is kept: fixtures have objects of the same names. */
async function refusal(object: unknown): Promise<string | undefined> {
  try {
    const path = collectionPath(namedOf(asApiObject(object)))
    await client.request({ method: 'POST', path, query: { fieldValidation: 'Strict', dryRun: 'All' }, body: object })
    return undefined
  } catch (thrown) {
    return `${JSON.stringify(object)}: ${errorText(thrown)}`
  }
}

test.each(fixtureNames())('%s: the API server takes each object that is read', async (name) => {
  const objects = readInstallation(fixture(name)).outcomes.flatMap((outcome) => ('object' in outcome ? [outcome.object] : []))
  expect(objects.length).toBeGreaterThan(5)
  expect((await Promise.all(objects.map(refusal))).filter((reason) => reason !== undefined)).toEqual([])
})
