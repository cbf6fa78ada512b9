// SPDX-License-Identifier: Apache-2.0
/** A thousand stored objects, or five, in a real API server: they are here in well under a minute. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { systemClock } from '#lib/base/clock.ts'
import { readHeld } from '#upgrade/storage/import-state.ts'
import { storageSteps } from '#upgrade/storage/steps.ts'
import { readInstallation } from '#upgrade/stored/installation.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { NOW } from '../../upgrade/stored/addresses.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { raw } from '../../upgrade/stored/stored.ts'
import { defineStored } from './plant.ts'
import { runSteps } from './run-steps.ts'

const BUILD_MS = 30 * 60_000
/** A server stores each of them in a few ms of a processor. */
const [OBJECTS = 0] = ofMatrix([5000], [1000])
const LONGEST_MS = 40_000

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

const STORED = Array.from({ length: OBJECTS }, (_, at) => {
  const app = `app${at % 100}`
  const spec = {
    order: at,
    selector: `app == '${app}'`,
    ingress: [{ action: 'Allow', protocol: 'TCP', destination: { ports: [1000 + (at % 50)] } }],
  }
  return raw('GlobalNetworkPolicy', `default.p${at}`, { spec })
})

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-import-many-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await defineStored(client)
  await mapLimited(STORED, 16, ({ metadata, ...object }) => {
    const { name } = asApiObject({ metadata, ...object }).metadata
    return client.create(asApiObject({ ...object, metadata: { name } }))
  })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

test(`${OBJECTS} objects are imported, and compared with what the server has`, { timeout: 240_000 }, async () => {
  const options = { client, clock: systemClock, namespace: 'kube-system', environment: {}, version: '3.31.5', drainMs: 0 }
  const found = readInstallation({ objects: STORED, pods: [], nodes: [], environment: {}, now: NOW })
  const steps = storageSteps(options, found)
  const at = steps.findIndex(({ name }) => name === 'import')
  await runSteps(steps.slice(0, at))
  const began = performance.now()
  const { told } = await runSteps(steps.slice(at, at + 1))
  const tookMs = performance.now() - began
  expect(told).toContain(`GlobalNetworkPolicy: ${OBJECTS} here, as they are stored`)
  expect((await readHeld(options, new AbortController().signal)).filter(({ kind }) => kind === 'GlobalNetworkPolicy')).toHaveLength(OBJECTS)
  console.log(`${OBJECTS} objects in ${(tookMs / 1000).toFixed(1)} s`)
  expect(tookMs).toBeLessThan(LONGEST_MS)
})
