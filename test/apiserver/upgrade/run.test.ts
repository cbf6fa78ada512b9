// SPDX-License-Identifier: Apache-2.0
/** `upgrade plan` and `upgrade run`, as a person types them, on a manifest of an older version with edits: whole, and
 * killed at random moments. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import { asApiObject, namedOf, type Named } from '#lib/api/resource.ts'
import { otherUid } from '#upgrade/stored/uid.ts'
import { at, listAt, textAt } from '../../../lab/raw.ts'
import { Random } from '../../../soak/random.ts'
import { OldCluster } from './old-cluster.ts'
import { agentsOf, EDITED_REQUESTS, plantForm } from './plant-forms.ts'
import { IMAGE, WHOLE_MS } from './upgrade-run.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { SEED } from '../../support/steady/seed.ts'

const BUILD_MS = 30 * 60_000
/** the gate has those of an import, in `import.test.ts` */
const KILLS = Number(process.env['KILLS'] ?? ofMatrix([1], [0])[0])
/** A run that is not killed takes some 20 s. */
const SPAN_MS = 6000
/** The lock is waited for from the third second to the thirteenth. */
const LOCKED_MS = 7000
const STORED_INFORMATION: Named = { apiVersion: 'crd.netplane.io/v1', kind: 'ClusterInformation', name: 'default' }
const STORED_POLICIES = { apiVersion: 'crd.netplane.io/v1', kind: 'NetworkPolicy' }
const AGENTS = agentsOf('netplane')
const WEB = { apiVersion: 'netplane.io/v3', kind: 'NetworkPolicy', name: 'web' }
/** That its owner's new object must not take along. */
const ROTA: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'rota' }
const FELIX: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }
const STEPS = [
  ...['owners-kept', 'lock', 'api-service', 'definitions', 'import', 'networks', 'verdicts', 'unlock', 'admission', 'owners-back'],
  ...['settings', 'roll', 'verify', 'prune'],
]

async function plant(old: OldCluster): Promise<void> {
  await plantForm(old, '3.27', 'netplane')
  const [stored] = await old.client.list({ ...STORED_POLICIES, namespace: 'shop' })
  const uid = otherUid(stored?.metadata.uid ?? '')
  await old.client.create(asApiObject({ ...ROTA, metadata: { name: 'rota', namespace: 'shop', ownerReferences: [{ ...WEB, uid }] } }))
  old.runControllers('--namespace=kube-system')
}

let whole: OldCluster
const ending = new AsyncDisposableStack()
/** Of a run that was not killed. */
let end: readonly string[] = []

// one server at a time: both have the same ports
beforeAll(async () => {
  whole = ending.use(await OldCluster.start(plant))
}, BUILD_MS)

afterAll(() => ending.disposeAsync())

test('a plan names what is installed, each edit with its place, and every step; it writes nothing', async () => {
  const before = await whole.end('kube-system')
  const { code, output } = await whole.netplanectl('upgrade', 'plan')
  expect(output).toContain('from v3.27.0 (manifest, variant netplane, datastore kubernetes, namespace kube-system) to v3.31.5')
  expect(output).toMatch(/FELIX_LOGSEVERITYSCREEN.*"Debug" \(kubectl-edit\).*FelixConfiguration default: spec\.logSeverityScreen/)
  expect(output).toMatch(/resources.*Installation default: spec\.nodePods\.resources/)
  for (const step of STEPS) expect(output).toContain(` ${step}: `)
  expect(output).toContain('Nothing is in the way.')
  expect(code).toBe(0)
  expect(await whole.end('kube-system')).toEqual(before)
})

test('version tells what an older installation says of itself', async () => {
  expect((await whole.netplanectl('version')).output).toMatch(/^Cluster Version: +v3\.27\.0$/m)
})

test('an account without the rights for all of it begins nothing', async () => {
  const before = await whole.end('kube-system')
  for (const verb of ['run', 'back']) {
    const { code, output } = await whole.netplanectlOfReader('upgrade', verb)
    expect([verb, code]).toEqual([verb, 1])
    expect(output).toMatch(/in the way:\n.*not all of that is allowed to it\. Use an account that has the cluster role cluster-admin/)
  }
  expect(await whole.end('kube-system')).toEqual(before)
})

test('what is in the way is told, and a run does nothing', async () => {
  const daemonSet = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'netplane-node' }
  const owned = (value: string | null) =>
    whole.client.patch(daemonSet, { metadata: { labels: { 'addonmanager.kubernetes.io/mode': value } } }, { type: 'merge' })
  await owned('Reconcile')
  const { code, output } = await whole.netplanectl('upgrade', 'run')
  await owned(null)
  expect(code).toBe(1)
  expect(output).toMatch(/in the way:\n {2}DaemonSet kube-system\/netplane-node: .*addonmanager/)
  expect(
    await getOrNone(whole.client, { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name: 'tiers.netplane.io' }),
  ).toBeUndefined()
})

test(
  'one that is killed while the datastore is locked is taken back: all is as it was',
  async () => {
    const before = await whole.end('kube-system')
    expect(await whole.killedAfter(LOCKED_MS, 'upgrade', 'run')).toBeNull()
    expect(at(await whole.client.get(STORED_INFORMATION), 'spec.datastoreReady')).toBe(false)
    const { code, output } = await whole.netplanectl('upgrade', 'back')
    expect(output).toContain('What the older version stored is in use again.')
    // no server of the older API is there, which says whose UID that was
    expect([code, output]).toEqual([1, expect.stringMatching(/not so: .*rota/)])
    expect(await whole.end('kube-system')).toEqual(before)
  },
  WHOLE_MS,
)

test(
  'a run does every step, and the next one finds nothing to do',
  async () => {
    const { uid } = (await whole.client.get(AGENTS)).metadata
    const first = await whole.netplanectl('upgrade', 'run', '--timeout', '60')
    expect(first.output).toContain('The upgrade is done.')
    expect(first.code).toBe(0)
    const agents = await whole.client.get(AGENTS)
    expect(agents.metadata.uid).toBe(uid)
    const [agent] = listAt(agents, 'spec.template.spec.containers')
    expect(textAt(agent, 'image')).toBe(IMAGE)
    expect(textAt(agent, 'resources.requests.cpu')).toBe(EDITED_REQUESTS.cpu)
    const felix = await whole.client.get({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' })
    expect(textAt(felix, 'spec.logSeverityScreen')).toBe('Debug')
    const owner = await whole.client.get({ ...WEB, namespace: 'shop' })
    expect(listAt(await whole.client.get(ROTA), 'metadata.ownerReferences')).toEqual([{ ...WEB, uid: owner.metadata.uid }])
    end = await whole.end('kube-system')
    const again = await whole.netplanectl('upgrade', 'run', '--json')
    expect(JSON.parse(again.output)).toMatchObject({
      steps: expect.not.arrayContaining([expect.objectContaining({ outcome: 'done' })]) as unknown,
    })
    expect(again.code).toBe(0)
    const late = await whole.netplanectl('upgrade', 'back')
    expect(late.output).toContain('the imported objects are unlocked')
    expect(late.code).toBe(1)
  },
  WHOLE_MS,
)

test('an older netplanectl is told by the server that what it writes is read by none', async () => {
  const set = { apiVersion: 'crd.netplane.io/v1', kind: 'GlobalNetworkSet', metadata: { name: 'late' }, spec: {} }
  const [policy] = await whole.client.list(STORED_POLICIES)
  if (policy === undefined) throw new Error('no stored policy')
  const { metadata, ...rest } = policy
  const writes = [
    whole.client.create(asApiObject(set)),
    whole.client.update({ ...rest, metadata: { ...metadata, labels: { by: 'cli' } } }),
    whole.client.patch(namedOf(policy), { spec: { order: 1 } }, { type: 'merge' }),
    whole.client.delete(namedOf(policy)),
  ]
  for (const write of await Promise.allSettled(writes))
    expect(write).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('netplanectl') as unknown } })
})

test('a setting that is changed after an upgrade stays, whatever runs again', async () => {
  await whole.client.patch(FELIX, { spec: { logSeverityScreen: 'Warning' } }, { type: 'merge' })
  expect((await whole.netplanectl('upgrade', 'run')).code).toBe(0)
  expect(textAt(await whole.client.get(FELIX), 'spec.logSeverityScreen')).toBe('Warning')
})

test(
  'finish takes away what was stored, and only then',
  async () => {
    const { code, output } = await whole.netplanectl('upgrade', 'run', '--finish', '--timeout', '60')
    expect(output).toContain('The upgrade is done.')
    expect(code).toBe(0)
    const definitions = await whole.client.list({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' })
    expect(definitions.filter((one) => textAt(one, 'spec.group') === 'crd.netplane.io')).toEqual([])
  },
  WHOLE_MS,
)

test.each(KILLS > 0 ? [KILLS] : [])(
  'one that is killed at random moments, %i times, comes to the same end',
  async (times) => {
    await ending.disposeAsync()
    expect(end).not.toEqual([])
    const random = new Random(SEED)
    console.log(`upgrade: SEED=${SEED}`)
    for (let kills = 0; kills < times;) {
      await using killed = await OldCluster.start(plant)
      while ((await killed.killedAfter(random.below(SPAN_MS), 'upgrade', 'run', '--timeout', '60')) === null) kills++
      const last = await killed.netplanectl('upgrade', 'run', '--timeout', '60')
      expect(last.output).toContain('The upgrade is done.')
      expect(await killed.end('kube-system')).toEqual(end)
    }
  },
  BUILD_MS + KILLS * 2 * SPAN_MS,
)
