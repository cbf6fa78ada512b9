// SPDX-License-Identifier: Apache-2.0
/** `netplanectl migrate host-endpoints` with a real API server and the controllers that run. Layer: test. */
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { asApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { textAt } from '../../../lab/raw.ts'
import { found } from '../objects.ts'
import { run, type Ended } from '../run.ts'
import {
  addNode,
  CONFIGURATION,
  configure,
  Controllers,
  ControllersCluster,
  endpointNames,
  hostEndpoint,
  removeNode,
  soon,
  V3,
} from './controllers.ts'

const BUILD_MS = 30 * 60_000
const POLICY: Named = { apiVersion: V3, kind: 'GlobalNetworkPolicy', name: 'zones' }

let at: ControllersCluster
let program: Controllers | undefined

beforeAll(async () => {
  at = await ControllersCluster.start()
  program = new Controllers(at)
  await soon('a configuration', async () => (await found(at.admin, CONFIGURATION)) !== undefined)
}, BUILD_MS)

afterAll(async () => {
  await program?.[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

beforeEach(async () => {
  const { admin } = at
  await configure(admin, { hostEndpoint: null })
  await admin.delete(POLICY).catch(() => undefined)
  for (const name of ['n1', 'n2']) await removeNode(admin, name)
  await soon('nothing is left', async () => {
    for (const name of await endpointNames(admin)) await admin.delete({ apiVersion: V3, kind: 'HostEndpoint', name }).catch(() => undefined)
    return (await endpointNames(admin)).length === 0
  })
  await addNode(admin, 'n1', { zone: 'a' })
  await addNode(admin, 'n2', { zone: 'a' })
})

/** All that counts of its profile is that no policy decides. */
async function oldEndpoint(name: string, node: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const { spec, ...rest } = hostEndpoint(name, node, labels)
  await at.admin.create(asApiObject({ ...rest, spec: { ...(spec as object), profiles: ['netplane-default-allow'] } }))
}

async function migrate(...flags: readonly string[]): Promise<Ended> {
  const main = join(packageRoot(), 'dist/cli/main.js')
  return await run(process.execPath, [main, 'migrate', 'host-endpoints', '--kubeconfig', at.cluster.kubeconfig(), ...flags])
}

const labelOf = async (node: string, label: string): Promise<string | undefined> =>
  (await at.admin.get({ apiVersion: 'v1', kind: 'Node', name: node })).metadata.labels?.[label]
const autoCreate = async (): Promise<string | undefined> =>
  textAt(await found(at.admin, CONFIGURATION), 'spec.controllers.node.hostEndpoint.autoCreate')

test('without --yes the command prints what it would do, and writes nothing', async () => {
  await oldEndpoint('mine', 'n1', { role: 'web' })
  for (const flags of [[], ['--dry-run', '--yes']]) {
    const { code, output } = await migrate(...flags)
    expect(code).toBe(0)
    expect(output.split('\n')).toEqual([
      'node n1: label role=web',
      'ControllersConfiguration default: autoCreate Enabled',
      'nodes that get one and had none, under the policies that select it: n2',
      'node n1: delete host endpoint mine',
      'nothing was written: --yes does it',
      '',
    ])
  }
  expect([await endpointNames(at.admin), await labelOf('n1', 'role'), await autoCreate()]).toEqual([['mine'], undefined, undefined])
})

test('old ones go when automatic ones judge alike, and a second run has nothing to do', async () => {
  await oldEndpoint('a-hep', 'n1', { role: 'web' })
  await oldEndpoint('z-hep', 'n2', { role: 'db' })
  const { code, output } = await migrate('--yes')
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('deleted: a-hep, z-hep') as string })
  expect(await endpointNames(at.admin)).toEqual(['n1-auto-hep', 'n2-auto-hep'])
  const labels = (await found(at.admin, { apiVersion: V3, kind: 'HostEndpoint', name: 'n1-auto-hep' }))?.metadata.labels
  expect(labels).toMatchObject({ role: 'web', zone: 'a' })
  expect(await migrate('--yes')).toEqual({ code: 0, output: 'there are no host endpoints of all interfaces but automatic ones\n' })
})

test('where verdicts would differ nothing is written, and names are told', async () => {
  const rules = { selector: "zone == 'a'", ingress: [{ action: 'Allow', protocol: 'TCP' }] }
  await at.admin.create(asApiObject({ apiVersion: V3, kind: POLICY.kind, metadata: { name: POLICY.name }, spec: rules }))
  await oldEndpoint('mine', 'n1', { role: 'web' })
  const { code, output } = await migrate('--yes')
  expect(code).toBe(1)
  expect(output).toContain('n1 (mine): ingress, of the host itself: policies none become default: GlobalNetworkPolicy/zones deny')
  expect(output).toContain('nothing was written')
  expect([await endpointNames(at.admin), await labelOf('n1', 'role'), await autoCreate()]).toEqual([['mine'], undefined, undefined])
})

test('a run that was cut off is begun again: what is done is found, also without controllers that answer in time', async () => {
  await oldEndpoint('mine', 'n1', { role: 'web' })
  await program?.[Symbol.asyncDispose]()
  program = undefined
  const cut = await migrate('--yes', '--timeout', '1')
  expect(cut).toMatchObject({
    code: 1,
    output: expect.stringContaining('no automatic endpoint of n1: do controllers run? Nothing was deleted') as string,
  })
  expect([await endpointNames(at.admin), await labelOf('n1', 'role'), await autoCreate()]).toEqual([['mine'], 'web', 'Enabled'])
  program = new Controllers(at, 'again')
  expect(await migrate('--yes')).toMatchObject({ code: 0, output: expect.stringContaining('deleted: mine') as string })
  expect(await endpointNames(at.admin)).toEqual(['n1-auto-hep', 'n2-auto-hep'])
})

test('as JSON it is one record', async () => {
  await oldEndpoint('mine', 'n1', { role: 'web' })
  const { output } = await migrate('--json')
  expect(JSON.parse(output)).toEqual({
    nodes: [{ node: 'n1', old: ['mine'], labels: { role: 'web' } }],
    ...{ enables: true, newNodes: ['n2'], problems: [], end: 'nothing was written: --yes does it' },
  })
})
