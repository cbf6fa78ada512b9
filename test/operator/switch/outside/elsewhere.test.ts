// SPDX-License-Identifier: Apache-2.0
/** Node ports of the operator's own node, asked by a pod on another. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderAsking } from '#operator/switch/outside/asking-pod.ts'
import { Elsewhere, otherNode, type Now, type Question } from '#operator/switch/outside/elsewhere.ts'
import type { NodeFound } from '#operator/switch/observed.ts'
import { parseOptions } from '#operator/run/options.ts'

const PLACES = ['192.0.2.1:30080', '192.0.2.1:30053/UDP']
const SECOND = 1000
const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: 'BPF' })
const place = { namespace: 'netplane-system', image: 'netplane:1', computed }

function node(name: string, more: Partial<NodeFound> = {}): NodeFound {
  const dataplane = { mode: 'BPF', since: '', configurations: {} } as const
  const status = { version: 'v', dataplane, proof: undefined, kubeProxy: undefined, flows: undefined }
  const is = { isReady: true, unreadySince: 0, isCordoned: false, isOperators: name === 'a', agentSince: 0 }
  return { name, uid: name, ...is, status, ...more }
}

const question = (about: string, more: Partial<Question> = {}): Question => ({
  ...{ about, node: 'a', from: 'b', places: PLACES, patienceMs: 5000 },
  ...more,
})

const after = (seconds: number, more: Partial<Now> = {}): Now => ({
  ...{ nodes: [node('a'), node('b')], pods: [], now: seconds * SECOND, wall: 1_700_000_000_000 + seconds * SECOND, mostMs: 30 * SECOND },
  ...more,
})

/** Of the DaemonSet that is waited for, as a kubelet would have it. */
function pod(asking: Elsewhere, state: object): ApiObject {
  const { awaited } = asking
  if (awaited === undefined) throw new Error('none is waited for')
  const template = fieldsOf(fieldsOf(renderAsking({ ...place, ...awaited })['spec'])['template'])
  const metadata = { name: 'p', ...fieldsOf(template['metadata']) }
  const status = { phase: 'Pending', initContainerStatuses: [{ name: 'ask', state }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'b' }, status })
}

const said = (message: string, exitCode = 0): object => ({ terminated: { exitCode, message } })

test('it is waited for until a pod of this very question has ended, and the answer stands as long as the question', () => {
  const asking = new Elsewhere()
  expect(asking.hear(question('before'), false, after(0))).toEqual({ kind: 'waiting' })
  const first = pod(asking, said(`${PLACES.join('\n')}\n`))
  expect(asking.hear(question('before'), false, after(1, { pods: [pod(asking, said('Error', 1))] }))).toEqual({ kind: 'waiting' })
  expect(asking.hear(question('before'), false, after(2, { pods: [first] }))).toEqual({ kind: 'answered', places: PLACES })
  asking.rest()
  expect(asking.hear(question('after'), true, after(3, { pods: [first] }))).toEqual({ kind: 'waiting' })
  const second = pod(asking, said(`192.0.2.9:1\n${PLACES[0]}\n`))
  const found = { kind: 'answered', places: PLACES.slice(0, 1) }
  expect(asking.hear(question('after'), true, after(4, { pods: [first, second] }))).toEqual(found)
  asking.rest()
  expect(asking.hear(question('after'), true, after(1000))).toEqual(found)
  expect([asking.awaited, asking.note]).toEqual([undefined, undefined])
})

test('what answered before a change is asked again when the change comes much later', () => {
  const asking = new Elsewhere()
  asking.hear(question('before'), false, after(0))
  const pods = [pod(asking, said(''))]
  expect(asking.hear(question('before'), false, after(1, { pods }))).toEqual({ kind: 'answered', places: [] })
  expect(asking.hear(question('before'), false, after(60, { pods }))).toEqual({ kind: 'answered', places: [] })
  expect(asking.hear(question('before'), false, after(61, { pods }))).toEqual({ kind: 'waiting' })
})

test('a node that says nothing in time is not waited for, and what keeps its pod is told', () => {
  const asking = new Elsewhere()
  asking.hear(question('before'), false, after(0))
  const waiting = { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } }
  const pods = [pod(asking, waiting)]
  expect(asking.hear(question('before'), false, after(29, { pods }))).toEqual({ kind: 'waiting' })
  asking.rest()
  expect(asking.hear(question('before'), false, after(30, { pods }))).toEqual({ kind: 'unheard' })
  expect(asking.awaited).toBeUndefined()
  expect(asking.note).toMatch(
    /^node ports of a were asked by itself, and not from outside: a pod on b has said nothing for 30 s \(b: .*no such image\)$/,
  )
})

test.each([
  ['no other node is ready', { from: undefined }],
  ['b is not ready', {}],
])('it is said at once that %s', (why, more) => {
  const asking = new Elsewhere()
  const nodes = [node('a'), node('b', { isReady: false })]
  expect(asking.hear(question('before', more), false, after(0, { nodes }))).toEqual({ kind: 'unheard' })
  expect(asking.note).toBe(`node ports of a were asked by itself, and not from outside: ${why}`)
})

test('a node without node ports is no question', () => {
  const asking = new Elsewhere()
  expect(asking.hear(question('before', { from: undefined, places: [] }), false, after(0))).toEqual({ kind: 'answered', places: [] })
  expect([asking.note, asking.awaited]).toEqual([undefined, undefined])
})

test('the first other node asks that is at work, a cordoned one where there is no other', () => {
  const all = [node('a'), node('b', { isReady: false }), node('c', { status: undefined }), node('d', { isCordoned: true }), node('e')]
  expect(otherNode(all)).toBe('e')
  expect(otherNode(all.slice(0, 4))).toBe('d')
  expect(otherNode(all.slice(0, 3))).toBeUndefined()
})

test('the pod is on that node alone, in its network, and has no rights', () => {
  const { spec } = renderAsking({ ...place, from: 'b', places: PLACES, patienceMs: 5000, run: 'r' })
  expect(fieldsOf(fieldsOf(spec)['template'])['spec']).toMatchObject({
    automountServiceAccountToken: false,
    hostNetwork: true,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] }],
        },
      },
    },
    initContainers: [{ args: ['--for=5', ...PLACES.map((one) => `--place=${one}`)] }],
  })
  const asked = parseOptions(['ask', '--for=5', ...PLACES.map((one) => `--place=${one}`)])
  expect(asked).toEqual({ kind: 'ask', places: PLACES, patienceMs: 5000 })
})
