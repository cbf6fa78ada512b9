// SPDX-License-Identifier: Apache-2.0
/** `netplanectl install dns` before a real API server, as a program: what it prints, applies and refuses.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { BUILD_MS, DEPLOYMENT, InstallCluster, NAMESPACE } from './install-cluster.ts'

let of: InstallCluster

beforeAll(async () => {
  of = await InstallCluster.start()
}, BUILD_MS)

afterAll(async () => {
  await of[Symbol.asyncDispose]()
})

const MANIFEST = join(packageRoot(), 'deploy/operator/netplane-operator.yaml')
const BY_SERVER = ['apply', '--server-side', '-f', MANIFEST]
const BY_CLIENT = ['apply', '-f', MANIFEST]

async function nameservers(): Promise<unknown> {
  const path = ['spec', 'template', 'spec', 'dnsConfig', 'nameservers']
  return path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), await of.client.get(DEPLOYMENT))
}

beforeEach(async () => {
  await of.drop(DEPLOYMENT)
})

test('without the operator it says what is missing', async () => {
  expect(await of.netplanectl('install', 'dns', '--platform', 'EKS', '--apply')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining(
      `there is no Deployment ${NAMESPACE}/netplane-operator: apply deploy/operator/netplane-operator.yaml first`,
    ) as unknown,
  })
})

test.each(['Generic', 'OpenShift', 'AKS', 'MKE', 'RKE2'])('%s needs none', async (platform) => {
  expect(await of.netplanectl('install', 'dns', '--platform', platform, '--apply')).toEqual({
    code: 0,
    out: '',
    err: `${platform} needs no name server but the nodes' own: nothing to do\n`,
  })
})

const PATCHES = [
  { way: '--apply', patch: applied, side: 'server', apply: BY_SERVER },
  { way: 'the printed command', patch: printedCommand, side: 'client', apply: BY_CLIENT },
  { way: '--apply', patch: applied, side: 'client', apply: BY_CLIENT },
  { way: 'the printed command', patch: printedCommand, side: 'server', apply: BY_SERVER },
]

test.each(ofMatrix(PATCHES, PATCHES.slice(0, 2)))(
  "what $way has patched after the $side's apply survives the next, which differs in nothing",
  async ({ patch, apply }) => {
    of.kubectl(...apply)
    expect(await nameservers()).toBeUndefined()
    await patch()
    expect(await nameservers()).toEqual(['169.254.169.253'])
    const { generation } = (await of.client.get(DEPLOYMENT)).metadata
    // exits 1 where anything differs
    expect(of.kubectl('diff', ...apply.slice(1))).toBe('')
    of.kubectl(...apply)
    expect((await of.client.get(DEPLOYMENT)).metadata.generation).toBe(generation)
    // by the other way too, which takes fields of the manifest over
    for (const again of [apply, [...BY_SERVER, '--force-conflicts'], BY_CLIENT]) {
      of.kubectl(...again)
      expect(await nameservers()).toEqual(['169.254.169.253'])
    }
    expect(await of.netplanectl('install', 'dns', '--platform', 'KOPS', '--apply')).toMatchObject({
      code: 0,
      out: expect.stringContaining('already') as unknown,
    })
  },
)

test('name servers that another client has set stay, and the message names it', async () => {
  of.kubectl(...BY_SERVER)
  const spec = { template: { spec: { dnsConfig: { nameservers: ['192.0.2.53'] } } } }
  const metadata = { namespace: NAMESPACE, name: DEPLOYMENT.name }
  await of.client.apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }, { fieldManager: 'terraform' })
  const { code, err } = await of.netplanectl('install', 'dns', '--platform', 'EKS', '--apply')
  expect(code).toBe(1)
  expect(err).toContain('conflict with "terraform"')
  expect(await nameservers()).toEqual(['192.0.2.53'])
})

async function applied(): Promise<void> {
  expect(await of.netplanectl('install', 'dns', '--platform', 'KOPS', '--apply')).toMatchObject({ code: 0, err: '' })
}

/** As a person copies it from standard error. */
async function printedCommand(): Promise<void> {
  const { out, err } = await of.netplanectl('install', 'dns', '--platform', 'KOPS')
  expect(JSON.parse(out)).toEqual({ spec: { template: { spec: { dnsConfig: { nameservers: ['169.254.169.253'] } } } } })
  const command = err.split('\n').find((line) => line.startsWith('kubectl ')) ?? ''
  execFileSync('sh', ['-c', command], {
    env: { ...process.env, PATH: `${of.programs}:${process.env['PATH'] ?? ''}`, KUBECONFIG: of.cluster.kubeconfig() },
  })
}
