// SPDX-License-Identifier: Apache-2.0
/** `upgrade run` of a chart, killed within the step `chart`: with the real helm, which is left alone or killed as well.
 * KILLS: random moments, after those that have names. Layer: test. */
import { expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import { listAt, textAt } from '../../../lab/raw.ts'
import { Random } from '../../../soak/random.ts'
import { soon } from '../controllers/controllers.ts'
import { OldCluster, RUN_LEASE, type Begun } from './old-cluster.ts'
import { agentsNamespace, OPERATOR, plantForm } from './plant-forms.ts'
import { IMAGE, upgradeRun, WHOLE_MS } from './upgrade-run.ts'
import { SEED } from '../../support/steady/seed.ts'

const BUILD_MS = 30 * 60_000
const KILLS = Number(process.env['KILLS'] ?? 2)
/** What helm does takes some two seconds. */
const SPAN_MS = 3000
const STEP_MS = 120_000
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', name: 'netplane-operator' }
const VALUES = 'upgrade.netplane.io/chart-values'
const RECORD = { apiVersion: 'v1', kind: 'Secret', namespace: 'netplane-operator' }

type Moment = (old: OldCluster) => Promise<boolean>

const isKept: Moment = async ({ client }) => (await client.get(NAMESPACE)).metadata.annotations?.[VALUES] !== undefined
const isGone: Moment = async ({ client }) => (await getOrNone(client, OPERATOR)) === undefined
const isPending: Moment = async ({ client }) =>
  (await client.list(RECORD, { labelSelector: 'owner=helm,status=pending-upgrade' })).length > 0
const isMade: Moment = async ({ client }) =>
  textAt(listAt(await getOrNone(client, OPERATOR), 'spec.template.spec.containers')[0], 'image') === IMAGE

/** One after the other, in one cluster: each run begins where the one before was killed. */
const MOMENTS: readonly (readonly [string, Moment, 'kill' | 'killAll'])[] = [
  ['the values are kept', isKept, 'kill'],
  ['the Deployment is gone', isGone, 'kill'],
  ['helm has begun', isPending, 'kill'],
  ['helm has begun, and is killed as well', isPending, 'killAll'],
  ['helm has made the Deployment, and is killed as well', isMade, 'killAll'],
]

/** Of one that was not disturbed. */
let end: readonly string[] = []

async function plant(old: OldCluster): Promise<void> {
  await plantForm(old, '3.31', 'chart')
}

/** Also what only the operator's namespace has. */
async function ended(old: OldCluster): Promise<readonly string[]> {
  const spaces = await Promise.all([agentsNamespace('chart'), NAMESPACE.name].map((namespace) => old.end(namespace)))
  const annotations = (await old.client.get(NAMESPACE)).metadata.annotations ?? {}
  const statuses = (await old.client.list(RECORD, { labelSelector: 'owner=helm' })).map(({ metadata }) => metadata.labels?.['status'])
  return [...spaces.flat(), `values ${String(annotations[VALUES])}`, `deployed ${statuses.filter((one) => one === 'deployed').length}`]
}

/** Its Lease is free then, as it is some seconds later. */
async function killed(old: OldCluster, run: Begun, how: 'kill' | 'killAll'): Promise<void> {
  await run[how]()
  await old.client.delete(RUN_LEASE)
}

async function isInStep(run: Begun): Promise<void> {
  await soon('the step chart has begun', () => Promise.resolve(/^chart: /m.test(run.output())), STEP_MS)
}

test(
  'one that is not disturbed',
  async () => {
    await using undisturbed = await OldCluster.start(plant)
    const { code, output } = await upgradeRun(undisturbed, 'chart')
    expect([code, output]).toEqual([0, expect.stringContaining('The upgrade is done.')])
    end = await ended(undisturbed)
    expect(end).toContain('deployed 1')
  },
  BUILD_MS + WHOLE_MS,
)

async function comesToTheEnd(old: OldCluster): Promise<void> {
  const { code, output } = await upgradeRun(old, 'chart')
  expect([code, output]).toEqual([0, expect.stringContaining('The upgrade is done.')])
  expect(await ended(old)).toEqual(end)
}

test(
  'one that is killed at each moment of the step comes to the same end',
  async () => {
    await using old = await OldCluster.start(plant)
    for (const [what, isThere, how] of MOMENTS) {
      const run = old.begin('upgrade', 'run', '--timeout', '60')
      await isInStep(run)
      await soon(what, () => isThere(old), STEP_MS)
      await killed(old, run, how)
      expect(run.output()).not.toContain('verify: ')
    }
    await comesToTheEnd(old)
  },
  WHOLE_MS + MOMENTS.length * STEP_MS,
)

test(
  'one that is killed at random moments of the step comes to the same end',
  async () => {
    const random = new Random(SEED)
    console.log(`chart: SEED=${SEED}`)
    for (let kills = 0; kills < KILLS;) {
      await using old = await OldCluster.start(plant)
      for (let isOver = false; !isOver && kills < KILLS; kills++) {
        const run = old.begin('upgrade', 'run', '--timeout', '60')
        await isInStep(run)
        await new Promise((resolve) => setTimeout(resolve, random.below(SPAN_MS)))
        isOver = run.output().includes('verify: ')
        await killed(old, run, random.below(2) === 0 ? 'kill' : 'killAll')
      }
      await comesToTheEnd(old)
    }
  },
  BUILD_MS + KILLS * STEP_MS,
)
