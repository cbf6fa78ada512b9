// SPDX-License-Identifier: Apache-2.0
/** Two runs at once, as two persons type them: the second is refused by name, a killed one is waited for, and one that
 * has lost its Lease goes no further. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import type { Named } from '#lib/api/resource.ts'
import { at, textAt } from '../../../lab/raw.ts'
import { soon } from '../controllers/controllers.ts'
import { OldCluster, RUN_LEASE, type Begun } from './old-cluster.ts'
import { plantForm } from './plant-forms.ts'

const BUILD_MS = 30 * 60_000
const TEST_MS = 180_000
/** A process begins, takes the Lease and looks at the cluster. */
const BEGIN_MS = 30_000
/** The Lease is held for 15 s, and looked at every four. */
const FREE_MS = 20_000
const STORED_INFORMATION: Named = { apiVersion: 'crd.netplane.io/v1', kind: 'ClusterInformation', name: 'default' }
const HELD =
  /in the way:\n {2}Lease kube-system\/netplane-upgrade: another run is at work: that of .*, process (\d+) \(\w+\), since 20.*Z\. Wait/

let old: OldCluster

beforeAll(async () => {
  old = await OldCluster.start((cluster) => plantForm(cluster, '3.27', 'netplane'))
}, BUILD_MS)

afterAll(async () => {
  await old[Symbol.asyncDispose]()
})

async function holder(): Promise<string> {
  return textAt(await getOrNone(old.client, RUN_LEASE), 'spec.holderIdentity') ?? ''
}

/** A run that has locked the datastore, and waits for older agents to hear of it. */
async function lockedRun(): Promise<Begun> {
  const run = old.begin('upgrade', 'run')
  const isLocked = async (): Promise<boolean> => at(await old.client.get(STORED_INFORMATION), 'spec.datastoreReady') === false
  await soon('the datastore is locked', isLocked, BEGIN_MS + FREE_MS)
  return run
}

test(
  'plan and dry run take no Lease',
  async () => {
    await old.netplanectl('upgrade', 'plan')
    await old.netplanectl('upgrade', 'run', '--dry-run')
    expect(await getOrNone(old.client, RUN_LEASE)).toBeUndefined()
  },
  TEST_MS,
)

test(
  'a second run is refused by the name of the first, and so is the way back; to look is not',
  async () => {
    const first = await lockedRun()
    const before = await holder()
    expect(before).toContain(`process ${first.pid}`)
    const [second, back, plan, dry] = await Promise.all([
      old.netplanectl('upgrade', 'run'),
      old.netplanectl('upgrade', 'back'),
      old.netplanectl('upgrade', 'plan'),
      old.netplanectl('upgrade', 'run', '--dry-run'),
    ])
    for (const { code, output } of [second, back]) {
      expect(code).toBe(1)
      expect(HELD.exec(output)?.[1]).toBe(String(first.pid))
    }
    for (const { output } of [plan, dry]) expect(output).not.toContain('Lease')
    expect(await holder()).toBe(before)
    await first.kill()
    const start = performance.now()
    const { code, output } = await old.netplanectl('upgrade', 'back')
    expect([code, output]).toEqual([0, expect.stringContaining('What the older version stored is in use again.')])
    expect(performance.now() - start).toBeLessThan(BEGIN_MS + FREE_MS)
    expect(await holder()).toBe('')
  },
  TEST_MS,
)

test(
  'one whose Lease another has taken stops where it is, and what it held for others goes on',
  async () => {
    const run = await lockedRun()
    await old.client.patch(RUN_LEASE, { spec: { holderIdentity: 'eve@desk' } }, { type: 'merge' })
    expect(await run.ended).toBe(1)
    expect(run.output()).toMatch(
      /stopped at lock:\n {2}Lease kube-system\/netplane-upgrade was lost to another run: that of eve@desk, since 20/,
    )
    expect(run.output()).not.toContain('\nimport: ')
    expect(await holder()).toBe('eve@desk')
  },
  TEST_MS,
)
