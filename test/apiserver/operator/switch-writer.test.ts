// SPDX-License-Identifier: Apache-2.0
/** Writes of a switch before a real API server: what is ours goes again, and nothing else. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { silentLog } from '#lib/obs/log.ts'
import { PLATFORM_NETWORK } from '#operator/switch/proxy-found.ts'
import type { SwitchWrite } from '#operator/switch/situation.ts'
import { SwitchWriter } from '#operator/switch/switch-writer.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { define } from '../definitions.ts'
import { found } from '../objects.ts'

const BUILD_MS = 30 * 60_000
const FELIX = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' } as const
const DEFAULT: Named = { ...FELIX, name: 'default' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
const { signal } = new AbortController()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-switch-writer-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, FELIX.kind)
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

afterEach(async () => {
  for (const { metadata } of await client.list(FELIX)) await client.delete({ ...FELIX, name: metadata.name })
})

const writer = (): SwitchWriter => new SwitchWriter({ client, log: silentLog, whyLocked: () => undefined, mayAct: () => true })

/** As on a platform that keeps its kube-proxy. */
async function write(...writes: readonly SwitchWrite[]): Promise<void> {
  const all = await client.list(FELIX)
  const configurations = new Map(all.map((one) => [`/${one.metadata.name}`, one]))
  const done = await writer().write({ writes, configurations, proxy: PLATFORM_NETWORK, keepsProxyRules: true, signal })
  expect(done.troubles).toEqual([])
}

/** As an administrator does by kubectl. */
const set = (spec: object): Promise<ApiObject> =>
  client.apply({ ...FELIX, metadata: { name: 'default' }, spec }, { fieldManager: 'kubectl', force: true })

async function spec(): Promise<unknown> {
  return (await found(client, DEFAULT))?.['spec']
}

const release = async (): Promise<unknown> => writer().release(await client.get(DEFAULT), signal)

test('what keeps kube-proxy’s rules goes with us, and others’ settings stay', async () => {
  await set({ logSeverityScreen: 'Warning' })
  await write({ kind: 'default', mode: 'BPF' })
  expect(await spec()).toEqual({ logSeverityScreen: 'Warning', bpfEnabled: true, bpfProxyIptablesCleanupEnabled: false })
  await release()
  expect(await spec()).toEqual({ logSeverityScreen: 'Warning' })
})

test('it goes with the mode as well', async () => {
  await set({ logSeverityScreen: 'Warning' })
  await write({ kind: 'default', mode: 'BPF' })
  await write({ kind: 'default', mode: 'Standard' })
  expect(await spec()).toEqual({ logSeverityScreen: 'Warning', bpfEnabled: false })
})

test('an administrator who keeps those rules keeps them afterwards', async () => {
  await set({ bpfProxyIptablesCleanupEnabled: false })
  await write({ kind: 'default', mode: 'BPF' })
  await release()
  expect(await spec()).toEqual({ bpfProxyIptablesCleanupEnabled: false })
})

test('a configuration that only we have made goes whole', async () => {
  await write({ kind: 'default', mode: 'BPF' })
  await release()
  expect(await found(client, DEFAULT)).toBeUndefined()
})
