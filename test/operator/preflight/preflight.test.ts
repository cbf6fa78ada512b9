// SPDX-License-Identifier: Apache-2.0
/** What stands while nodes are asked, and for whom it counts. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { finding, PROBE_GROUPS, type Finding } from '#lib/preflight/findings.ts'
import { MOST_REPORT_BYTES, writeReport, type Facts } from '#lib/preflight/report.ts'
import { RUN_ANNOTATION } from '#lib/preflight/results.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { PREFLIGHT } from '#lib/render/preflight-pod.ts'
import { AGAIN_MS as LEAST_MS } from '#operator/preflight/node-run.ts'
import { Preflight, type PreflightStep, type PreflightStepInput } from '#operator/preflight/preflight.ts'

const SMALL = finding('mtu-small', 'eth0', 1300, 1330)
const FACTS = { provider: 'Generic', hasKubeProxy: false, installed: undefined } as const
const KIND = { name: PREFLIGHT, groups: PROBE_GROUPS, clusterFindings: [] }

function pod(nodeName: string, run: string, told: readonly Finding[] | Facts): ApiObject {
  const message = Array.isArray(told) ? writeReport(told) : writeReport([], MOST_REPORT_BYTES, told as Facts)
  const terminated = { exitCode: 0, message }
  const labels = { 'app.kubernetes.io/name': PREFLIGHT }
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: nodeName, labels, annotations: { [RUN_ANNOTATION]: run } },
    spec: { nodeName, initContainers: [{ name: 'devices' }] },
    status: { initContainerStatuses: [{ name: 'devices', state: { terminated } }] },
  })
}

function input(now: number, more: Partial<PreflightStepInput> = {}): PreflightStepInput {
  return {
    ...{ installation: 'first', namespace: 'netplane-system', image: 'i', cluster: 'uid', serviceAddresses: [], endpoint: undefined },
    vxlanPort: undefined,
    pools: [],
    endpointPods: [],
    computed: computeInstallation(installationSpec.read({}), FACTS),
    pods: [],
    nodes: ['a', 'b'].map((name) => asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name } })),
    now,
    wall: 1_700_000_000_000 + now,
    ...more,
  }
}

/** By the DaemonSet's template. */
function runOf({ objects }: PreflightStep): string {
  return new RegExp(`"${RUN_ANNOTATION}":"([^"]+)"`).exec(JSON.stringify(objects))?.[1] ?? ''
}

/** Two nodes are asked again a little later. */
const AGAIN_MS = LEAST_MS + 1000

test('what nodes have said stands while they are asked once more, and goes when all have answered', () => {
  const preflight = new Preflight()
  const first = runOf(preflight.step(input(0), KIND))
  const blocked = preflight.step(input(1, { pods: [pod('a', first, [SMALL]), pod('b', first, [])] }), KIND)
  expect(blocked.state).toMatchObject({ degraded: { reason: 'Blocked', message: expect.stringMatching(/^a: eth0/) as unknown } })
  expect(blocked.state.progressing).toBeUndefined()
  const again = preflight.step(input(1 + AGAIN_MS), KIND)
  const second = runOf(again)
  expect(second).not.toBe(first)
  expect(again.state).toMatchObject({ unavailable: blocked.state.unavailable, degraded: blocked.state.degraded })
  expect(again.state.progressing?.message).toMatch(/waiting for a, b$/)
  const half = preflight.step(input(2 + AGAIN_MS, { pods: [pod('a', second, [])] }), KIND)
  expect(half.state.degraded).toEqual(blocked.state.degraded)
  const over = preflight.step(input(3 + AGAIN_MS, { pods: [pod('a', second, []), pod('b', second, [])] }), KIND)
  expect(over).toMatchObject({ isPassed: true, state: { available: { reason: 'Passed', message: 'nothing is in the way' } }, objects: [] })
})

test('a question that is another has nothing of the last one', () => {
  const preflight = new Preflight()
  const first = runOf(preflight.step(input(0), KIND))
  preflight.step(input(1, { pods: [pod('a', first, [SMALL]), pod('b', first, [])] }), KIND)
  expect(preflight.step(input(2, { image: 'other' }), KIND).state.degraded).toBeUndefined()
})

test('what has passed is not asked again, but for another Installation', () => {
  const preflight = new Preflight()
  const run = runOf(preflight.step(input(0), KIND))
  expect(preflight.step(input(1, { pods: [pod('a', run, []), pod('b', run, [])] }), KIND).isPassed).toBe(true)
  expect(preflight.step(input(10 * AGAIN_MS), KIND)).toMatchObject({ isPassed: true, objects: [] })
  const other = preflight.step(input(11 * AGAIN_MS, { installation: 'second' }), KIND)
  expect(other.isPassed).toBe(false)
  expect(runOf(other)).not.toBe('')
})

test('a name that all nodes find to be one of several API servers is refused when they have answered', () => {
  const preflight = new Preflight()
  const plane = (name: string, address: string): ApiObject => ({
    ...asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
    status: { addresses: [{ type: 'InternalIP', address }] },
  })
  const asked = { endpoint: { host: 'cp-1', port: '6443' }, nodes: [plane('a', '192.0.2.11'), plane('b', '192.0.2.12')] }
  const run = runOf(preflight.step(input(0, asked), KIND))
  const half = preflight.step(input(1, { ...asked, pods: [pod('a', run, { addresses: '192.0.2.11' })] }), KIND)
  expect(half.findings.blocking).toEqual([])
  const pods = ['a', 'b'].map((name) => pod(name, run, { addresses: '192.0.2.11' }))
  const over = preflight.step(input(2, { ...asked, pods }), KIND)
  expect(over.state.degraded?.message).toMatch(/^cp-1 \(192\.0\.2\.11\) is the address of node a alone/)
  expect(over.isPassed).toBe(false)
})
