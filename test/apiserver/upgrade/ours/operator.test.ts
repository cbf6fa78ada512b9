// SPDX-License-Identifier: Apache-2.0
/** An operator of this form, before one of a newer version and after it: its file and chart untouched have no edits,
 * and what the newer one has defined stays. Layer: test. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asApiObject, namedOf, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { put } from '../../definitions.ts'
import { soon } from '../../controllers/controllers.ts'
import { run } from '../../run.ts'
import { ofMatrix } from '../../../support/steady/matrix.ts'
import { OldCluster } from '../old-cluster.ts'
import { addField, definitionVersions, NEXT } from './next-version.ts'
import { applyFile, fileOf, OBJECTS } from './own-cluster.ts'

const BUILD_MS = 30 * 60_000
const TEST_MS = 120_000
const BEFORE = '3.31.4'
const SYSTEM = 'netplane-system'
const OPERATOR: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'netplane-operator', name: 'netplane-operator' }
const FELIX: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }

/** What an operator of that version would have made of its agents. */
async function plantAgents({ client }: OldCluster, version: string): Promise<void> {
  await put(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } })
  const agents = fileOf('manifests/netplane.yaml', version).find(({ kind }) => kind === 'DaemonSet')
  await put(client, { ...agents, metadata: { ...agents?.metadata, namespace: SYSTEM } })
}

async function plantFile(old: OldCluster, version: string): Promise<void> {
  await applyFile(old, 'operator/operator-crds.yaml', version)
  await applyFile(old, 'operator/netplane-operator.yaml', version)
  for (const object of fileOf('operator/custom-resources.yaml', version)) await put(old.client, object)
  await plantAgents(old, version)
}

async function plantChart(old: OldCluster, version: string): Promise<void> {
  const chart = join(packageRoot(), 'deploy/chart')
  const release = [
    'netplane',
    chart,
    '--namespace',
    'netplane-operator',
    '--create-namespace',
    '--set',
    `netplaneOperator.version=${version}`,
  ]
  const { code, output } = await run(join(old.programs, 'helm'), ['install', ...release, '--kubeconfig', old.kubeconfig])
  if (code !== 0) throw new Error(output)
  await plantAgents(old, version)
}

const WAYS = [
  ['its file', plantFile],
  ['the chart', plantChart],
] as const

describe.each(ofMatrix(WAYS, WAYS.slice(0, 1)))('by %s', (_, plant) => {
  let old: OldCluster

  beforeAll(async () => {
    old = await OldCluster.start((cluster) => plant(cluster, BEFORE))
  }, BUILD_MS)

  afterAll(async () => {
    await old[Symbol.asyncDispose]()
  })

  const edited = async (container: object): Promise<string> => {
    const spec = { template: { spec: { containers: [{ name: 'netplane-operator', ...container }] } } }
    await old.client.patch(OPERATOR, { spec }, { type: 'strategic', fieldManager: 'kubectl-edit' })
    return (await old.netplanectl('upgrade', 'plan')).output
  }

  test('untouched it has no edits; what stays is told, and what has no place is refused', async () => {
    const plan = await old.netplanectl('upgrade', 'plan')
    expect(plan.output).toContain('from v3.31.4')
    expect(plan.output).not.toContain('Deployment netplane-operator/netplane-operator: spec')
    expect(await edited({ resources: { requests: { cpu: '90m' } } })).toMatch(
      /resources\.requests\.cpu: "50m" → "90m".*: kept in the operator's/,
    )
    expect(await edited({ env: [{ name: 'HTTPS_PROXY', value: 'http://proxy' }] })).toMatch(
      /in the way:\n.*netplane-operator\]\.env\[HTTPS_PROXY\]: "http:\/\/proxy": this version has no place for it/,
    )
  })
})

test(
  'an operator that starts where a newer one was leaves its definitions, and objects lose nothing',
  async () => {
    await using old = await OldCluster.start(async (cluster) => {
      await plantFile(cluster, NEXT)
      for (const object of OBJECTS) await put(cluster.client, object)
      await addField(cluster.client, ['FelixConfiguration'])
    })
    const { client } = old
    await soon('it has the field', async () => {
      const { spec } = await client.patch(FELIX, { spec: { later: 'yes' } }, { type: 'merge' })
      return (spec as { later?: string }).later === 'yes'
    })
    const before = await definitionVersions(client)
    old.runOperator()
    await soon('it has looked at all', () => Promise.resolve(old.operatorLog.split('definition.newer').length > before.length), 30_000)
    await soon(
      'it acts',
      async () => (await client.list({ apiVersion: 'operator.netplane.io/v1', kind: 'NetplaneStatus' })).length > 0,
      60_000,
    )
    expect(await definitionVersions(client)).toEqual(before)
    for (const object of OBJECTS.map(namedOf)) await client.patch(object, { metadata: { labels: { by: 'hand' } } }, { type: 'merge' })
    expect((await client.get(FELIX))['spec']).toMatchObject({ later: 'yes' })
    // what the operator is told by a field that it does not know is refused by a plan, by its name
    const installation: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
    await addField(client, ['Installation'])
    await soon('the Installation has the field', async () => {
      const { spec } = await client.patch(installation, { spec: { later: 'yes' } }, { type: 'merge' })
      return (spec as { later?: string }).later === 'yes'
    })
    expect((await old.netplanectl('upgrade', 'plan')).output).toContain(
      'Installation default: spec.later: "yes": this version has no such field',
    )
  },
  BUILD_MS + TEST_MS,
)

test(
  'a definition that says no version, or an older one, comes to be that of the operator',
  async () => {
    await using old = await OldCluster.start(async (cluster) => {
      await put(cluster.client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } })
      await applyFile(cluster, 'operator/operator-crds.yaml', BEFORE)
      await addField(cluster.client, ['Tier'])
    })
    old.runOperator()
    const tiers = asApiObject({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'tiers.netplane.io' },
    })
    await soon(
      'it has no such field any more',
      async () => !JSON.stringify(await old.client.get(namedOf(tiers))).includes('"later"'),
      30_000,
    )
    expect((await old.client.get(namedOf(tiers))).metadata.annotations).toMatchObject({ 'netplane.io/definition-version': 'v3.31.5' })
  },
  BUILD_MS,
)
