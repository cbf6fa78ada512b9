// SPDX-License-Identifier: Apache-2.0
/** Every version and way of installing it, planned from files: nothing is lost, nothing is in the way, and which steps
 * it takes. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { planRecord } from '#cli/upgrade/text.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { factsFromFiles } from '#upgrade/found/from-files.ts'
import { planUpgrade, type UpgradePlan } from '#upgrade/plan/plan.ts'
import { upgradeSteps } from '#upgrade/plan/steps.ts'
import {
  agentPod,
  daemonSetName,
  EVERY,
  FORMS,
  installed,
  isOperators,
  object,
  STORED_BY,
  tagOf,
  withObjects,
  type MatrixForm,
} from '../found/installed.ts'
import { common } from '../stored/installation.ts'
import type { Version } from '../stored/stored.ts'
import { codesIn, pageText, rowsBelow } from '../pages.ts'

const STORAGE = [
  'owners-kept',
  'lock',
  'api-service',
  'definitions',
  'import',
  'networks',
  'verdicts',
  'unlock',
  'admission',
  'owners-back',
  'settings',
]
const INSTALLATION = ['installation-kept', 'operator-definitions', 'installation']
const END = ['verify', 'prune']
const STEPS: Readonly<Record<MatrixForm, readonly string[]>> = {
  netplane: [...STORAGE, 'roll', ...END],
  vxlan: [...STORAGE, 'roll', ...END],
  canal: [...STORAGE, 'flannel', 'roll', ...END],
  'policy-only': [...STORAGE, 'roll', ...END],
  operator: ['operator-stopped', ...STORAGE, ...INSTALLATION, 'adopt', 'operator', ...END],
  chart: ['operator-stopped', ...STORAGE, ...INSTALLATION, 'adopt', 'chart', ...END],
}

/** By which a user goes; what all forms have in common is in one of its own. */
const PAGES: Readonly<Record<MatrixForm, string>> = {
  ...{
    netplane: 'upgrade-manifest.md',
    vxlan: 'upgrade-manifest.md',
    canal: 'upgrade-flannel.md',
    'policy-only': 'upgrade-policy-only.md',
  },
  ...{ operator: 'upgrade-operator.md', chart: 'upgrade-operator.md' },
}

/** All objects of such a cluster. */
function cluster(version: Version, form: MatrixForm): readonly ApiObject[] {
  const { objects, pods, nodes } = common(version, STORED_BY[form])
  const agents = ['a', 'b'].map((node) =>
    agentPod(`kube-system/agent-${node}`, { node, daemonSet: daemonSetName(form), tag: tagOf(version) }),
  )
  const base =
    form === 'operator' || form === 'chart'
      ? installed(version, form).filter(({ apiVersion }) => !apiVersion.startsWith('crd.'))
      : [...pristineManifest(tagOf(version).slice(1), form), object('v1 Namespace', 'kube-system'), ...agents]
  return withObjects(base, ...[...nodes, ...pods, ...objects].map(asApiObject))
}

interface Planned {
  readonly plan: UpgradePlan
  readonly steps: readonly string[]
  readonly images: readonly string[]
}

function planned(objects: readonly ApiObject[]): Planned {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-plan-'))
  try {
    writeFileSync(join(folder, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    const facts = factsFromFiles(folder)
    const plan = planUpgrade({ facts, version: '3.31.5', now: 0 })
    const none = (): Promise<never> => Promise.reject(new InternalError('files have no server'))
    const client = new ApiClient({ server: { protocol: 'https:', host: 'files', port: 443, prefix: '', tls: none, headers: none } })
    const ways = { clock: systemClock, operator: { manager: 'operator', labels: {} }, chart: 'chart', kubeconfig: undefined, timeoutMs: 0 }
    const steps = upgradeSteps({ client, facts, plan, ...ways })
    return { plan, steps: steps.map(({ name }) => name), images: planRecord(plan, steps).images }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.each(EVERY)('%s by %s', (version, form) => {
  test('is planned with nothing in its way, no edit, every object with its outcome, and these steps', () => {
    const objects = cluster(version, form)
    const { plan, steps, images } = planned(objects)
    expect(images).toEqual(['netplane:3.31.5'])
    expect(plan.refusals).toEqual([])
    expect(plan.found).toMatchObject({ version: tagOf(version).slice(1) })
    expect(plan.edits.edits.filter(({ outcome }) => outcome.kind === 'refused')).toEqual([])
    if (!isOperators(form)) expect(plan.edits.edits).toEqual([])
    const stored = objects.filter(({ apiVersion }) => apiVersion === 'crd.netplane.io/v1')
    const outcomes = new Set(plan.stored?.outcomes.flatMap(({ of }) => (of === undefined ? [] : [`${of.kind}/${of.namespace}/${of.name}`])))
    const missing = stored.filter(({ kind, metadata: { namespace = '', name } }) => !outcomes.has(`${kind}/${namespace}/${name}`))
    expect(missing.map(({ kind }) => kind)).toEqual(
      missing.map(() => expect.stringMatching(/^(BlockAffinity|IPAMHandle|IPAMConfig)$/) as unknown),
    )
    expect(steps).toEqual(STEPS[form])
  })
})

test.each(['operator', 'chart'] as const)('images by %s are named from where they are pulled', (form) => {
  const name = 'netplane-operator/netplane-operator'
  const objects = cluster('3.27', form)
  const before = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'netplane-operator')
  const container = { name: 'operator', image: 'mirror.example.com/netplane/operator:v3.27.0' }
  const operator = object('apps/v1 Deployment', name, {
    metadata: before?.metadata ?? {},
    spec: { template: { spec: { containers: [container] } } },
  })
  const installation = object('operator.netplane.io/v1 Installation', 'default', { spec: { registry: 'reg.example.com/team' } })
  expect(planned(withObjects(objects, operator, installation)).images).toEqual([
    ...['mirror.example.com/netplane:3.31.5', 'reg.example.com/team/netplane:3.31.5'],
  ])
})

test('an address that no block would have is in the way', () => {
  const stray = asApiObject({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'stray' } },
    spec: { nodeName: 'a', containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP: '192.168.77.7', podIPs: [{ ip: '192.168.77.7' }] },
  })
  expect(planned([...cluster('3.27', 'netplane'), stray]).plan.refusals).toEqual([
    expect.objectContaining({
      resource: 'address 192.168.77.7 of shop/stray',
      reason: expect.stringContaining('in no stored block') as unknown,
    }),
  ])
})

function stepsIn(page: string, heading: string): readonly string[] {
  return rowsBelow(pageText(page), heading).flatMap(([step]) => codesIn(step))
}

test.each(FORMS)('the pages for %s have each of its steps, and no other', (form) => {
  const told = [...stepsIn('upgrade-run.md', '## What each step looks at'), ...stepsIn(PAGES[form], '## Steps of its own')]
  expect(STEPS[form].filter((step) => !told.includes(step))).toEqual([])
  const all = FORMS.filter((other) => PAGES[other] === PAGES[form]).flatMap((other) => STEPS[other])
  expect(told.filter((step) => step !== 'finish' && !all.includes(step))).toEqual([])
})
