// SPDX-License-Identifier: Apache-2.0
/** Manifests of older versions in a real API server: untouched they have no edit, and edits have the names of the
 * programs that made them. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { appliedBy } from '#upgrade/edits/applied.ts'
import { comparable } from '#upgrade/edits/comparable.ts'
import { differences } from '#upgrade/edits/differences.ts'
import { valueIn } from '#upgrade/edits/managers.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { OLD_VARIANTS } from '#upgrade/found/found.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { EVERY } from '../../upgrade/edits/served.ts'
import { run } from '../run.ts'
import { asServed } from './plant.ts'

const BUILD_MS = 30 * 60_000
const NODE = 'daemonset/netplane-node'

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let program = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-edits-'))
  const programs = await kubernetesPrograms()
  program = join(programs, 'kubectl')
  cluster = await LoopbackCluster.start({ programs, folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function kubectl(...args: readonly string[]): Promise<void> {
  const flags = [`--kubeconfig=${cluster.kubeconfig()}`, `--cache-dir=${join(folder, 'kubectl')}`, '--namespace=kube-system']
  const { code, output } = await run(program, [...flags, ...args])
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${output}`)
}

async function apply(objects: readonly object[], ...flags: readonly string[]): Promise<void> {
  const file = join(folder, 'manifest.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  await kubectl('apply', ...flags, '-f', file)
}

async function edits(base: readonly ApiObject[]): Promise<readonly string[]> {
  const live = await Promise.all(base.map(async (object) => await getOrNone(client, namedOf(asServed(object)))))
  const text = (value: unknown): string => (value === undefined ? '–' : JSON.stringify(value))
  return differences(
    base,
    live.filter((object) => object !== undefined),
  ).map(
    ({ resource, field, base: before, mine, managers }) =>
      `${resource}: ${field}: ${text(before)} → ${text(mine)} (${managers.join(', ')})`,
  )
}

afterEach(async () => {
  await kubectl('delete', '--ignore-not-found', '-f', join(folder, 'manifest.json'))
})

// the oldest and the newest
test.each(ofMatrix(EVERY, [...EVERY.slice(0, 1), ...EVERY.slice(-1)]))(
  '%s %s: an untouched installation has no edit',
  async (version, variant) => {
    const base = pristineManifest(version, variant)
    await apply(base.map(asServed))
    expect(await edits(base)).toEqual([])
  },
)

test.each(ofMatrix(OLD_VARIANTS, OLD_VARIANTS.slice(0, 1)))(
  '%s: an installation that was applied server-side has no edit either',
  async (variant) => {
    const base = pristineManifest('3.30.0', variant)
    await apply(base.map(asServed), '--server-side')
    expect(await edits(base)).toEqual([])
  },
)

describe('edits have the name of the program that made them', () => {
  const base = pristineManifest('3.27.5', 'netplane')
  const where = 'DaemonSet kube-system/netplane-node: spec.template.spec'
  const env = `${where}.containers[netplane-node].env`

  test('kubectl set, patch, edit and another manager that applies', async () => {
    await apply(base.map(asServed))
    await kubectl('set', 'env', NODE, '--containers=netplane-node', 'FELIX_LOGSEVERITYSCREEN=Debug', 'IP=none')
    await kubectl('set', 'resources', NODE, '--containers=netplane-node', '--limits=memory=1Gi')
    await kubectl('patch', NODE, '--type=json', '-p', '[{"op":"remove","path":"/spec/template/spec/priorityClassName"}]')
    const tolerations = { spec: { template: { spec: { nodeSelector: { pool: 'a' } } } } }
    const [daemonSet] = base.filter(({ kind }) => kind === 'DaemonSet').map(namedOf)
    if (daemonSet !== undefined) await client.patch(daemonSet, tolerations, { type: 'strategic', fieldManager: 'kubectl-edit' })
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'netplane-config', namespace: 'kube-system' } }
    await client.patch(namedOf(map), { ...map, data: { veth_mtu: '1400' } }, { type: 'apply', force: true, fieldManager: 'fleet' })
    expect(await edits(base)).toEqual([
      'ConfigMap kube-system/netplane-config: data.veth_mtu: "0" → "1400" (fleet)',
      `${where}.nodeSelector.pool: – → "a" (kubectl-edit)`,
      `${where}.priorityClassName: "system-node-critical" → – ()`,
      `${env}[IP]: "autodetect" → "none" (kubectl-set)`,
      `${env}[FELIX_LOGSEVERITYSCREEN]: – → "Debug" (kubectl-set)`,
      `${where}.containers[netplane-node].resources.limits.memory: – → "1Gi" (kubectl-set)`,
    ])
  })

  test('kubectl apply, of what is added and of what is taken away', async () => {
    await apply(base.map(asServed))
    const edited = base.map(asServed).map((object) => {
      if (object.kind !== 'DaemonSet') return object
      const text = JSON.stringify(object).replace('"k8s,bgp"', '"k8s"').replace('"hostNetwork":true,', '')
      return asApiObject(JSON.parse(text))
    })
    await apply(edited)
    expect(await edits(base)).toEqual([
      `${where}.hostNetwork: true → – (kubectl-client-side-apply)`,
      `${env}[CLUSTER_TYPE]: "k8s,bgp" → "k8s" (kubectl-client-side-apply)`,
    ])
  })

  test('a server-side apply does with each field what is told of it', async () => {
    const edited = base.map(asServed).map((object) => {
      const text = JSON.stringify(object).replace(
        '"env":[{"name":"DATASTORE_TYPE"',
        '"env":[{"name":"FELIX_FROMAPPLY","value":"1"},{"name":"DATASTORE_TYPE"',
      )
      return asApiObject(JSON.parse(object.kind === 'DaemonSet' ? text.replace('"k8s,bgp"', '"k8s"') : text))
    })
    await apply(base.map(asServed))
    await apply(edited)
    await kubectl('set', 'env', NODE, '--containers=netplane-node', 'FELIX_FROMSET=1', 'IP=none')
    const live = async (): Promise<readonly ApiObject[]> =>
      await Promise.all(base.map(async (one) => await client.get(namedOf(asServed(one)))))
    // the next version, as kubectl takes over from its older way
    const target = pristineManifest('3.31.4', 'netplane').map(asServed)
    const told = differences(base, await live()).map((edit) => [edit.steps, appliedBy(target)(edit)] as const)
    expect(told.map(([steps, applied]) => `${steps.at(-1) ?? ''} ${applied}`).sort()).toEqual([
      '[CLUSTER_TYPE] overwritten',
      '[FELIX_FROMAPPLY] goes',
      '[FELIX_FROMSET] stays',
      '[IP] overwritten',
    ])
    await apply(target, '--server-side', '--force-conflicts')
    const [after] = (await live()).filter(({ kind }) => kind === 'DaemonSet').map(comparable)
    const [wanted] = target.filter(({ kind }) => kind === 'DaemonSet').map(comparable)
    for (const [steps, applied] of told)
      expect(valueIn(after, steps)).toEqual(applied === 'overwritten' ? valueIn(wanted, steps) : applied === 'goes' ? undefined : '1')
  })

  test('an object that was deleted is one edit', async () => {
    await apply(base.map(asServed))
    await kubectl('delete', 'poddisruptionbudget', 'netplane-controllers')
    expect(await edits(base)).toEqual(['PodDisruptionBudget kube-system/netplane-controllers: : "installed" → – ()'])
  })
})
