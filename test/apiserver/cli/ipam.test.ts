// SPDX-License-Identifier: Apache-2.0
/** netplanectl's commands on addresses before a real API server. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { formatAddr, parseCidr } from '#lib/base/ip.ts'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { heldAddresses } from '#cli/ipam/view.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { IP_BLOCK, ipBlockObject, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { define, put } from '../definitions.ts'
import { run, type Ended } from '../run.ts'

const BUILD_MS = 30 * 60_000
const V3 = 'netplane.io/v3'
const RANGE = parseCidr('10.1.0.0/26')
const BLOCK = { ...IP_BLOCK, name: '10-1-0-0-26' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-ipam-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, IP_BLOCK.kind, 'IPPool', 'NodeNetwork', CLUSTER_INFORMATION.kind)
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }))
  await put(client, { apiVersion: V3, kind: 'IPPool', metadata: { name: 'p' }, spec: { cidr: '10.1.0.0/24' } })
  await put(client, { apiVersion: V3, kind: 'NodeNetwork', metadata: { name: 'n1' }, spec: { blocks: ['10.1.0.0/26', '10.1.9.0/26'] } })
  await runningPod('web', '10.1.0.1')
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** A pod that is there has the first address, one that is gone the second. */
beforeEach(async () => {
  for (const kind of [IP_BLOCK.kind, CLUSTER_INFORMATION.kind])
    for (const { metadata } of await client.list({ apiVersion: V3, kind }))
      await client.delete({ apiVersion: V3, kind, name: metadata.name })
  const held = [1, 2].map((at) => [at, { namespace: 'default', pod: at === 1 ? 'web' : 'gone', containerId: `c${at}` }] as const)
  await client.create(asApiObject(ipBlockObject({ cidr: RANGE, node: 'n1', held: new Map(held), freed: new Map() })))
})

async function runningPod(name: string, podIP: string): Promise<void> {
  const metadata = { name, namespace: 'default' }
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  const pod = await client.create(asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata, spec }))
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] }
  await client.update({ ...pod, status }, { subresource: 'status' })
}

async function lock(isLocked: boolean, netplaneVersion = `v${packageVersion()}`): Promise<ApiObject> {
  const spec = { clusterGUID: 'g1', netplaneVersion, datastoreReady: !isLocked }
  return await client.create(asApiObject({ ...CLUSTER_INFORMATION, metadata: { name: 'default' }, spec }))
}

async function ctl(...args: readonly string[]): Promise<Ended> {
  const program = join(packageRoot(), 'dist/cli/main.js')
  return await run(process.execPath, [program, 'ipam', ...args], { KUBECONFIG: cluster.kubeconfig() })
}

async function given(): Promise<readonly string[]> {
  return heldAddresses([parseIPBlock(await client.get(BLOCK))]).map(({ addr }) => formatAddr(addr))
}

test('show has the totals of pools and blocks, and who has an address', async () => {
  expect(await ctl('show', '--show-blocks')).toEqual({
    code: 0,
    output: `GROUPING  CIDR         NODE  IPS TOTAL  IPS IN USE  IPS FREE
IPPool p  10.1.0.0/24  -     256        2 (1%)      254 (99%)
Block     10.1.0.0/26  n1    64         2 (3%)      62 (97%)
`,
  })
  const { output } = await ctl('show', '--ip', '10.1.0.1')
  expect(output).toContain('IP 10.1.0.1 is in use\n  Given to:   pod default/web, container c1\n  Pods:       default/web on node n1\n')
  expect((await ctl('show', '--show-configuration')).output).toContain('StrictAffinity      true\n')
})

test('check finds what is leaked, and changes nothing', async () => {
  const before = await client.get(BLOCK)
  const { code, output } = await ctl('check', '--show-problem-ips')
  expect(code).toBe(0)
  expect(output).toContain('leaked     10.1.0.2  10.1.0.0/26  pod default/gone does not have it\n')
  expect(output).toContain('announced  -         10.1.9.0/26  node n1 does, no node has the block\n')
  expect(output).toMatch(/\nCheck complete; found 2 problems\.\n$/)
  expect(await client.get(BLOCK)).toEqual(before)
})

test('release takes an address back that no pod has, and one that a pod has by force', async () => {
  await client.patch(BLOCK, { metadata: { annotations: { theirs: 'kept' } } }, { type: 'merge' })
  expect(await ctl('release', '--ip', '10.1.0.1', '--ip', '10.1.0.2')).toEqual({
    code: 1,
    output: '10.1.0.1: pod default/web has it: use --force\nPartial success: released 1 out of 2 addresses\n',
  })
  expect(await given()).toEqual(['10.1.0.1'])
  const { metadata, spec } = await client.get(BLOCK)
  expect(metadata).toMatchObject({ annotations: { theirs: 'kept' }, labels: { 'netplane.io/node': 'n1' } })
  expect(spec).toMatchObject({ released: [{ address: '10.1.0.2' }] })
  expect(await ctl('release', '--ip', '10.1.0.1', '--force')).toEqual({ code: 0, output: 'Successfully released 1 address(es)\n' })
  expect(await given()).toEqual([])
  expect(await ctl('release', '--ip', '10.1.0.1')).toEqual({ code: 1, output: '10.1.0.1: no block has given it away\n' })
})

test('a report is used when the datastore was locked, and is, or by force', async () => {
  const report = join(folder, 'report.json')
  await lock(false)
  await ctl('check', '-o', report)
  const refused = await ctl('release', '--from-report', report)
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('the datastore is not locked') as string })
  await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: false } }, { type: 'merge' })
  expect((await ctl('release', '--from-report', report)).output).toContain('of a time when the datastore was not locked')
  expect(await given()).toEqual(['10.1.0.1', '10.1.0.2'])
  await ctl('check', '-o', report)
  expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
    clusterGUID: 'g1',
    datastoreLocked: true,
    problems: [{ kind: 'leaked' }, { kind: 'announced' }],
  })
  expect((await ctl('release', '--ip', '10.1.0.2')).output).toContain('the datastore is locked')
  expect(await ctl('release', '--from-report', report)).toEqual({ code: 0, output: 'Successfully released 1 address(es)\n' })
  expect(await given()).toEqual(['10.1.0.1'])
  expect(await ctl('release', '--from-report', report)).toEqual({
    code: 0,
    output: 'Skipped: 10.1.0.2 is given back, or to another pod, by now\nSuccessfully released 0 address(es)\n',
  })
  await client.patch(CLUSTER_INFORMATION, { spec: { clusterGUID: 'g2' } }, { type: 'merge' })
  expect((await ctl('release', '--from-report', report, '--force')).output).toContain('the report is of another cluster')
})

test('a report without the lock is used by force', async () => {
  const report = join(folder, 'forced.json')
  await lock(false)
  await ctl('check', '-o', report)
  expect(await ctl('release', '--from-report', report, '--force')).toEqual({ code: 0, output: 'Successfully released 1 address(es)\n' })
  expect(await given()).toEqual(['10.1.0.1'])
})

test('none of them is for a cluster of a newer minor version', async () => {
  await lock(false, 'v999.0.0')
  for (const args of [['show'], ['check'], ['release', '--ip', '10.1.0.2']])
    expect(await ctl(...args)).toMatchObject({ code: 1, output: expect.stringContaining('version mismatch: ') as string })
  expect(await given()).toEqual(['10.1.0.1', '10.1.0.2'])
  expect(await ctl('check', '--allow-version-mismatch')).toMatchObject({ code: 0 })
})
