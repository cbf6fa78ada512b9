// SPDX-License-Identifier: Apache-2.0
/** Pods of a preflight, in the states that a kubelet leaves them in, and what they tell of their nodes. Layer: test. */
import { expect, test } from 'vitest'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { writeReport } from '#lib/preflight/report.ts'
import { preflightResults, RUN_ANNOTATION, type RawObject } from '#lib/preflight/results.ts'

const RUN = '7'
const GROUPS = ['kernel', 'vxlan'] as const

const node = (name: string, more: object = {}): RawObject => ({ metadata: { name, ...more } })
const NODES = ['c', 'a', 'b'].map((name) => node(name))

interface Given {
  readonly statuses?: readonly object[]
  readonly run?: string
  readonly created?: string
  readonly deleted?: boolean
  readonly status?: object
  readonly spec?: object
}

function pod(
  of: string,
  { statuses = [], run = RUN, created = '2026-01-01T00:00:00Z', deleted = false, status = {}, spec }: Given = {},
): RawObject {
  return {
    metadata: {
      name: `netplane-preflight-${of}`,
      annotations: { [RUN_ANNOTATION]: run },
      creationTimestamp: created,
      ...(deleted ? { deletionTimestamp: created } : {}),
    },
    spec: { initContainers: GROUPS.map((name) => ({ name })), ...(spec ?? { nodeName: of }) },
    status: { initContainerStatuses: statuses, ...status },
  }
}

function ended(name: string, message: string, { exitCode = 0, from = 0, to = 20 } = {}): object {
  const time = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
  return { name, state: { terminated: { exitCode, reason: 'Completed', message, startedAt: time(from), finishedAt: time(to) } } }
}

const said = (findings: readonly Finding[] = [], facts = {}): string => writeReport(findings, 1700, facts)
const fit = (from = 0, to = 20): object[] => [ended('kernel', said([], { release: '6.1' })), ended('vxlan', said(), { from, to })]

test('answers are told by node, groups together', () => {
  const small = finding('vxlan-send', 4789, 'EPERM')
  const pods = [
    pod('a', { statuses: fit() }),
    pod('b', {
      statuses: [ended('kernel', said([finding('jit-off')], { release: '5.4' })), ended('vxlan', said([small], { port: '4789' }))],
    }),
  ]
  const found = preflightResults(pods, NODES, RUN)
  expect([...found.findings]).toEqual([
    ['a', []],
    ['b', [finding('jit-off'), small]],
  ])
  expect(found.facts.get('b')).toEqual({ release: '5.4', port: '4789' })
  expect(found.waiting).toEqual(['c'])
  expect([found.failed.size, found.cut.size, found.apart.size]).toEqual([0, 0, 0])
})

test('a node waits until all of its groups have ended; another run says nothing of it', () => {
  const pods = [
    pod('a', { statuses: [fit()[0] ?? {}, { name: 'vxlan', state: { running: {} } }] }),
    pod('b', { statuses: fit(), run: '6' }),
    pod('c', { statuses: [{ name: 'kernel', state: { waiting: { reason: 'PodInitializing' } } }] }),
  ]
  expect(preflightResults(pods, NODES, RUN)).toMatchObject({ waiting: ['a', 'b', 'c'], findings: new Map(), failed: new Map() })
})

test('nodes that are not ready or cordoned are waited for, and those without Linux are not', () => {
  const nodes = [node('a', { labels: { 'kubernetes.io/os': 'linux' } }), node('w', { labels: { 'kubernetes.io/os': 'windows' } })]
  expect(preflightResults([], [...nodes, { ...node('x'), spec: { unschedulable: true } }], RUN).waiting).toEqual(['a', 'x'])
})

test.each([
  [
    'an image that cannot be pulled',
    { statuses: [{ name: 'kernel', state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } } }] },
    'kernel: ImagePullBackOff: no such image',
  ],
  [
    'a long cause of an image that cannot be pulled',
    { statuses: [{ name: 'kernel', state: { waiting: { reason: 'ErrImagePull', message: `${'x'.repeat(1000)}: no such host` } } }] },
    /^kernel: ErrImagePull: x+…x+: no such host$/,
  ],
  ['a probe that could not look', { statuses: [ended('kernel', 'no addon', { exitCode: 2 })] }, 'kernel: no addon'],
  [
    'a program that could not start, by its last words',
    { statuses: [ended('kernel', 'FATAL: kernel too old\n', { exitCode: 127 })] },
    'kernel: the probe did not start, or ended before it had an answer (Completed, exit code 127): FATAL: kernel too old',
  ],
  [
    'one that ended without a word',
    { statuses: [ended('kernel', '', { exitCode: 139 })] },
    'kernel: the probe did not start, or ended before it had an answer (Completed, exit code 139)',
  ],
  ['a message that is no report', { statuses: [ended('kernel', 'hello')] }, /^kernel: not a preflight report: "hello"/],
  [
    'a pod that no node takes',
    {
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
            },
          },
        },
      },
      status: { conditions: [{ type: 'PodScheduled', status: 'False', message: '1 Too many pods' }] },
    },
    'not scheduled: 1 Too many pods',
  ],
  [
    'one that was evicted',
    { status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' } },
    'The node was low on memory',
  ],
] as const)('%s is told as why its node is not known', (_name, given, why) => {
  const found = preflightResults([pod('a', given)], NODES, RUN)
  expect(found.failed.get('a')).toEqual(typeof why === 'string' ? why : expect.stringMatching(why))
  expect(found.waiting).toEqual(['b', 'c'])
})

test('the last end counts while a container runs again, and the newest pod that stays', () => {
  const again = fit().map((status) => ({ ...status, lastState: 'state' in status ? status.state : {}, state: { running: {} } }))
  const pods = [
    pod('a', { statuses: again }),
    pod('b', { statuses: fit() }),
    pod('b', { created: '2026-01-02T00:00:00Z' }),
    pod('c', { created: '2026-01-02T00:00:00Z', deleted: true }),
    pod('c', { statuses: fit() }),
  ]
  const found = preflightResults(pods, NODES, RUN)
  expect([...found.findings.keys()]).toEqual(['a', 'c'])
  expect(found.waiting).toEqual(['b'])
})

test('what was cut is counted over the groups', () => {
  const full = (code: 'hooks-missing' | 'vxlan-port-socket'): string =>
    writeReport(
      Array.from({ length: 50 }, (_, at) => finding(code, `${at}`, 'x')),
      400,
    )
  const pods = [pod('a', { statuses: [ended('kernel', full('hooks-missing')), ended('vxlan', full('vxlan-port-socket'))] })]
  const found = preflightResults(pods, NODES, RUN)
  expect((found.findings.get('a')?.length ?? 0) + (found.cut.get('a') ?? 0)).toBe(100)
})

test('a peer that was not there to be heard is no loss, and is named', () => {
  const lost = (...peers: string[]): string => said(peers.map((peer) => finding('vxlan-lost-from', peer, '10.0.0.1', 4789)))
  const asked = (name: string, text: string, [from, to]: readonly [number, number]): RawObject =>
    pod(name, { statuses: [ended('kernel', said()), ended('vxlan', text, { from, to })] })
  const pods = [asked('a', lost('b', 'c', 'd'), [0, 20]), asked('b', said(), [10, 30]), asked('c', said(), [60, 80])]
  const found = preflightResults(pods, [...NODES, node('d')], RUN)
  expect(found.findings.get('a')).toEqual([finding('vxlan-lost-from', 'b', '10.0.0.1', 4789)])
  expect([...found.apart]).toEqual([['a', ['c', 'd']]])
  expect(found.waiting).toEqual(['d'])
})

test('a node says nothing of what it was not asked, and moves no terminal', () => {
  const statuses = [ended('kernel', said([finding('platform-refused', 'gke', 'x')])), ended('vxlan', said([]))]
  expect(preflightResults([pod('a', { statuses })], [node('a')], RUN).failed.get('a')).toMatch(
    /^kernel: .*platform-refused is not of kernel/,
  )
  const forged = [ended('kernel', said([finding('hooks-missing', 'x\u001b[2J\nnothing is in the way', 'y')])), ended('vxlan', said([]))]
  const [found] = preflightResults([pod('a', { statuses: forged })], [node('a')], RUN).findings.get('a') ?? []
  expect(found?.args[0]).toBe('x [2J nothing is in the way')
})
