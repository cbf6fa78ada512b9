// SPDX-License-Identifier: Apache-2.0
/** To the next version of this form and back, and there again, by `upgrade run` of each: nothing of a cluster's objects
 * is lost, and what this version does not understand is refused. Layer: test. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { namedOf, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { listAt, textAt } from '../../../../lab/raw.ts'
import { Controllers, soon } from '../../controllers/controllers.ts'
import type { Ended } from '../../run.ts'
import { addField, definitionVersions, NEXT, nextPackage } from './next-version.ts'
import { OldCluster } from '../old-cluster.ts'
import { OBJECTS, plantOurs } from './own-cluster.ts'
import { agentsOf, controllersOf } from '../plant-forms.ts'
import { WHOLE_MS } from '../upgrade-run.ts'

const BUILD_MS = 30 * 60_000
const THIS = '3.31.5'
const AGENTS = agentsOf('netplane')
const CONTROLLERS = controllersOf('netplane')
const FELIX: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }
const POLICY: Named = { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', name: 'security.web' }
const INFORMATION: Named = { apiVersion: 'netplane.io/v3', kind: 'ClusterInformation', name: 'default' }

let old: OldCluster
let next = ''
/** Those that write what the cluster's version is. */
let controllers: Controllers | undefined

beforeAll(async () => {
  old = await OldCluster.start((cluster) => plantOurs(cluster, THIS))
  next = nextPackage(old.folder)
}, BUILD_MS)

afterAll(async () => {
  await controllers?.[Symbol.asyncDispose]()
  await old[Symbol.asyncDispose]()
})

/** Each with its contents and UID. */
async function objects(): Promise<readonly string[]> {
  const all = await Promise.all(OBJECTS.map((object) => old.client.get(namedOf(object))))
  return all.map(({ kind, metadata: { name, uid, labels }, spec }) => JSON.stringify({ kind, name, uid, labels, spec }))
}

async function runs(version: string): Promise<Ended> {
  const root = version === THIS ? packageRoot() : next
  const run = { isOver: false }
  const isRolled = async (): Promise<boolean> => run.isOver || (await runsBy(CONTROLLERS, version))
  const rolled = soon('the controllers are rolled', isRolled, WHOLE_MS)
  const ending = old.netplanectlOf(join(root, 'dist/cli/main.js'), 'upgrade', 'run', '--timeout', '60').finally(() => {
    run.isOver = true
  })
  await rolled
  if (await runsBy(CONTROLLERS, version)) await startControllers(root)
  return await ending
}

/** In the place of those of the other version. */
async function startControllers(root: string): Promise<void> {
  const { folder, kubeconfig } = old
  await controllers?.[Symbol.asyncDispose]()
  controllers = new Controllers({ folder, kubeconfig, root }, 'controllers', ['--namespace=kube-system'])
}

async function runsBy(workload: Named, version: string): Promise<boolean> {
  return textAt(listAt(await old.client.get(workload), 'spec.template.spec.containers')[0], 'image') === `netplane:${version}`
}

/** On all nodes, and as the cluster says. */
async function isAt(version: string): Promise<void> {
  expect([await runsBy(AGENTS, version), await runsBy(CONTROLLERS, version)]).toEqual([true, true])
  await soon('the cluster says so', async () => textAt(await old.client.get(INFORMATION), 'spec.netplaneVersion') === `v${version}`, 30_000)
}

test(
  'to the next version: every object is as it was',
  async () => {
    const before = await objects()
    const { code, output } = await runs(NEXT)
    expect([code, output]).toEqual([0, expect.stringContaining('The upgrade is done.')])
    await isAt(NEXT)
    expect(await objects()).toEqual(before)
  },
  WHOLE_MS,
)

test(
  'an object that this version does not understand is refused by name on the way back, and nothing is begun',
  async () => {
    await addField(old.client, ['GlobalNetworkPolicy', 'FelixConfiguration', 'NodeNetwork'])
    const patched = async (named: Named, later: string | null): Promise<void> => {
      await soon('it has the field', async () => {
        const { spec } = await old.client.patch(named, { spec: { later } }, { type: 'merge' })
        return later === null || (spec as { later?: string }).later === later
      })
    }
    for (const named of [POLICY, FELIX, { ...FELIX, kind: 'NodeNetwork', name: 'a' }]) await patched(named, 'yes')
    const { code, output } = await runs(THIS)
    expect(code).toBe(1)
    expect(output).toContain(
      'in the way:\n  GlobalNetworkPolicy security.web: spec.later: this version does not take it: is not a field that is understood here. Change it so that both versions understand it, or stay at v3.31.6',
    )
    expect(output).toMatch(/to be known:\n {2}FelixConfiguration default: spec\.later: this version does not take it/)
    await isAt(NEXT)
    await patched(POLICY, null)
  },
  WHOLE_MS,
)

test(
  'back: definitions of the next version stay, and so does all that objects have, also after they are written',
  async () => {
    const before = await objects()
    const definitions = await definitionVersions(old.client)
    const { code, output } = await runs(THIS)
    expect([code, output]).toEqual([0, expect.stringContaining('The upgrade is done.')])
    await isAt(THIS)
    expect(await definitionVersions(old.client)).toEqual(definitions)
    expect(await objects()).toEqual(before)
    for (const object of OBJECTS) await old.client.patch(namedOf(object), { metadata: { annotations: { by: 'hand' } } }, { type: 'merge' })
    expect(await objects()).toEqual(before)
    expect(before.join()).toContain('"later":"yes"')
  },
  WHOLE_MS,
)

test(
  'and there again, and another run finds nothing to do',
  async () => {
    const before = await objects()
    expect((await runs(NEXT)).code).toBe(0)
    await isAt(NEXT)
    expect(await objects()).toEqual(before)
    const { output } = await old.netplanectlOf(join(next, 'dist/cli/main.js'), 'upgrade', 'run', '--json')
    const { steps } = JSON.parse(output) as { steps: readonly { outcome: string }[] }
    expect(steps.filter(({ outcome }) => outcome !== 'before')).toEqual([])
  },
  WHOLE_MS,
)
