// SPDX-License-Identifier: Apache-2.0
/** `upgrade run` from another version of this form: edits of its manifest are carried or refused, and its objects stay
 * as they are. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { namedOf, type Named } from '#lib/api/resource.ts'
import { listAt, numberAt, textAt } from '../../../../lab/raw.ts'
import { OldCluster } from '../old-cluster.ts'
import { OBJECTS, plantOurs, rolled } from './own-cluster.ts'
import { agentsOf, controllersOf } from '../plant-forms.ts'
import { IMAGE, upgradeRun, WHOLE_MS } from '../upgrade-run.ts'

const BUILD_MS = 30 * 60_000
const BEFORE = '3.31.4'
const AGENTS = agentsOf('netplane')
const CONTROLLERS = controllersOf('netplane')
const FELIX: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }

let old: OldCluster

beforeAll(async () => {
  old = await OldCluster.start((cluster) => plantOurs(cluster, BEFORE))
}, BUILD_MS)

afterAll(async () => {
  await old[Symbol.asyncDispose]()
})

async function edit(workload: Named, template: object, more: object = {}): Promise<void> {
  const patch = { spec: { ...more, template: { spec: template } } }
  await old.client.patch(workload, patch, { type: 'strategic', fieldManager: 'kubectl-edit' })
}

async function specs(): Promise<readonly string[]> {
  const all = await Promise.all(OBJECTS.map((object) => old.client.get(namedOf(object))))
  return all.map(({ kind, metadata: { name, uid, labels }, spec }) => JSON.stringify({ kind, name, uid, labels, spec }))
}

test('its manifest untouched has no edit, and nothing is in the way', async () => {
  const { code, output } = await old.netplanectl('upgrade', 'plan')
  expect(output).toContain('from v3.31.4 (manifest, a version of ours, datastore kubernetes, namespace kube-system) to v3.31.5')
  expect(output).not.toContain('edits:')
  expect([code, output]).toEqual([0, expect.stringContaining('Nothing is in the way.')])
})

test(
  'an edit without a place is refused with path, value and reason, and nothing is begun',
  async () => {
    await edit(AGENTS, { containers: [{ name: 'netplane-node', env: [{ name: 'HTTPS_PROXY', value: 'http://proxy' }] }] })
    const { code, output } = await old.netplanectl('upgrade', 'run')
    expect(code).toBe(1)
    expect(output).toContain(
      'in the way:\n  DaemonSet kube-system/netplane-node: spec.template.spec.containers[netplane-node].env[HTTPS_PROXY]: "http://proxy": this version has no place for it. Take it away.',
    )
    expect(textAt(listAt(await old.client.get(AGENTS), 'spec.template.spec.containers')[0], 'image')).toBe(`netplane:${BEFORE}`)
    await edit(AGENTS, { containers: [{ name: 'netplane-node', env: [{ name: 'HTTPS_PROXY', $patch: 'delete' }] }] })
  },
  WHOLE_MS,
)

test(
  'edits that have one are there afterwards, and objects are as they were',
  async () => {
    const level = [{ name: 'FELIX_LOGSEVERITYSCREEN', value: 'Debug' }]
    await edit(
      AGENTS,
      { containers: [{ name: 'netplane-node', env: level, resources: { requests: { cpu: '333m' } } }] },
      { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } },
    )
    await edit(CONTROLLERS, { tolerations: [{ key: 'own', operator: 'Exists' }] })
    await rolled(old)
    const before = await specs()
    const { code, output } = await upgradeRun(old, 'netplane')
    expect([code, output]).toEqual([0, expect.stringContaining('The upgrade is done.')])
    const agents = await old.client.get(AGENTS)
    const [agent] = listAt(agents, 'spec.template.spec.containers')
    expect(textAt(agent, 'image')).toBe(IMAGE)
    expect([textAt(agent, 'resources.requests.cpu'), textAt(agent, 'resources.requests.memory')]).toEqual(['333m', '200Mi'])
    expect(numberAt(agents, 'spec.updateStrategy.rollingUpdate.maxUnavailable')).toBe(2)
    const tolerations = listAt(await old.client.get(CONTROLLERS), 'spec.template.spec.tolerations')
    expect(tolerations.map((one) => textAt(one, 'key'))).toContain('own')
    expect(textAt(await old.client.get(FELIX), 'spec.logSeverityScreen')).toBe('Debug')
    expect(await specs()).toEqual(before.map((text) => text.replace('"vxlanPort"', '"logSeverityScreen":"Debug","vxlanPort"')))
  },
  WHOLE_MS,
)

test('another run finds nothing to do, and what was carried stays', async () => {
  const { output } = await old.netplanectl('upgrade', 'run', '--json')
  const { steps } = JSON.parse(output) as { steps: readonly { outcome: string }[] }
  expect(steps.filter(({ outcome }) => outcome !== 'before')).toEqual([])
})
