// SPDX-License-Identifier: Apache-2.0
/** The version that test/upgrade/previous names, with its own files, to this one by the commands of
 * docs/install-manifests.md, and back by its own: nothing of a cluster's objects is lost, and its own parsers take
 * them. Layer: test. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { kubernetesPrograms } from '../../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../../testkit/kubernetes/loopback-cluster.ts'
import { previousSources } from '../../../../testkit/previous/build.ts'
import { put } from '../../definitions.ts'
import { run } from '../../run.ts'
import { OBJECTS } from './own-cluster.ts'

const BUILD_MS = 30 * 60_000
const TEST_MS = 120_000
const NOW = join(packageRoot(), 'deploy/manifests/netplane.yaml')
/** Of a NodeNetwork and a FelixConfiguration, what came after that version. */
const LATER = ['interfaces', 'vxlanDSCPCopyEnabled']
const SETTINGS = { vxlanPort: 4799 }
const PROBE = `
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
const told = []
for (const object of JSON.parse(await new Response(process.stdin).text())) {
  if (object.kind === 'IPAMBlock') parseIPBlock(object)
  else {
    const { ref } = identify(object)
    const { kind, rejected } = parseObject(object, ref)
    if (kind === 'rejected') told.push(rejected)
  }
}
console.log(JSON.stringify(told))
`

let folder = ''
let before = ''
let programs = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-before-'))
  before = join(folder, 'before')
  mkdirSync(before)
  await previousSources(before)
  symlinkSync(join(packageRoot(), 'node_modules'), join(before, 'node_modules'))
  programs = await kubernetesPrograms()
  cluster = await LoopbackCluster.start({ programs, folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function kubectl(...args: readonly string[]): Promise<void> {
  const { code, output } = await run(join(programs, 'kubectl'), args, { KUBECONFIG: cluster.kubeconfig(), HOME: folder })
  if (code !== 0) throw new Error(`${args.join(' ')}: ${output}`)
}

const fileOfBefore = (name: string): string => join(before, 'deploy', name)

/** As that version's agents and administrators would have written them. */
const WRITTEN = OBJECTS.map((object) => {
  const spec = object.kind === 'FelixConfiguration' ? SETTINGS : fieldsOf(object['spec'])
  return asApiObject({ ...object, spec: Object.fromEntries(Object.entries(spec).filter(([field]) => !LATER.includes(field))) })
})

async function objects(): Promise<readonly ApiObject[]> {
  return await Promise.all(WRITTEN.map((object) => client.get(namedOf(object))))
}

async function texts(): Promise<readonly string[]> {
  return (await objects()).map(({ kind, metadata: { name, uid, labels }, spec }) => JSON.stringify({ kind, name, uid, labels, spec }))
}

/** What that version's own parsers refuse. */
async function refusedBefore(): Promise<unknown> {
  const probe = join(before, 'probe.mjs')
  writeFileSync(probe, PROBE)
  const { stdout, stderr } = spawnSync(process.execPath, ['--conditions=source', probe], {
    cwd: before,
    input: JSON.stringify(await objects()),
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

async function workloads(): Promise<readonly string[]> {
  const all = await Promise.all(['DaemonSet', 'Deployment'].map((kind) => listOrNone(client, { apiVersion: 'apps/v1', kind })))
  return all.flat().map(({ metadata: { namespace, name } }) => `${namespace ?? ''}/${name}`)
}

let first: readonly string[] = []

test(
  'there: objects of that version stay as they are',
  async () => {
    for (const object of loadAll(readFileSync(fileOfBefore('crds.yaml'), 'utf8'))) if (object !== null) await put(client, object)
    await kubectl('apply', '-f', fileOfBefore('netplane.yaml'))
    await kubectl('apply', '-f', fileOfBefore('rbac.yaml'))
    for (const object of WRITTEN) await put(client, object)
    first = await texts()
    expect(await refusedBefore()).toEqual([])
    expect(await workloads()).toEqual(['netplane-system/netplane-agent'])
    await kubectl('-n', 'netplane-system', 'delete', 'daemonset', 'netplane-agent')
    await kubectl('apply', '-f', NOW)
    await kubectl('delete', 'namespace', 'netplane-system', '--wait=false')
    await kubectl('delete', 'clusterrole,clusterrolebinding', 'netplane-agent')
    expect(await workloads()).toEqual(['kube-system/netplane-node', 'kube-system/netplane-controllers'])
    expect(await texts()).toEqual(first)
  },
  TEST_MS,
)

test(
  'back, by what is not a definition: all is there, also what this version has added, and that version takes it',
  async () => {
    const added = [
      ['NodeNetwork', 'a', { interfaces: [{ name: 'eth0', addresses: ['192.0.2.1'] }] }],
      ['FelixConfiguration', 'default', { vxlanDSCPCopyEnabled: true }],
    ] as const
    for (const [kind, name, spec] of added) await client.patch({ apiVersion: 'netplane.io/v3', kind, name }, { spec }, { type: 'merge' })
    const now = await texts()
    expect(now.join()).toContain('"interfaces"')
    await kubectl('-n', 'kube-system', 'delete', 'daemonset/netplane-node', 'deployment/netplane-controllers')
    await kubectl('create', 'namespace', 'netplane-before')
    for (const name of ['netplane.yaml', 'rbac.yaml']) {
      // the namespace of its name goes away by its controller, which does not run here
      const moved = join(folder, name)
      writeFileSync(moved, readFileSync(fileOfBefore(name), 'utf8').replaceAll('netplane-system', 'netplane-before'))
      await kubectl('apply', '-f', moved)
    }
    expect(await workloads()).toEqual(['netplane-before/netplane-agent'])
    expect(await texts()).toEqual(now)
    await kubectl('annotate', 'felixconfigurations.netplane.io', 'default', 'by=hand')
    expect(await texts()).toEqual(now)
    expect(await refusedBefore()).toEqual([])
  },
  TEST_MS,
)

test(
  'with its definitions, fields that it does not know are gone with the next write of an object',
  async () => {
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', fileOfBefore('crds.yaml'))
    const isGone = async (): Promise<boolean> => {
      await kubectl('annotate', '--overwrite', 'felixconfigurations.netplane.io', 'default', `by=${Math.random()}`)
      return !(await texts()).join().includes('vxlanDSCPCopyEnabled')
    }
    await expect.poll(isGone, { timeout: 30_000, interval: 500 }).toBe(true)
    const others = (text: string): boolean => !/"kind":"(NodeNetwork|FelixConfiguration)"/.test(text)
    expect((await texts()).filter(others)).toEqual(first.filter(others))
  },
  TEST_MS,
)
