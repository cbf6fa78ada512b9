// SPDX-License-Identifier: Apache-2.0
/** explain where an agent runs: what the loaded programs do is what its manifests say. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { globalPolicy, hostEndpoint, labelled, onlyFrom } from './manifests.ts'
import { makeNode, plug, POD_B, rows } from './node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

let machine: ScratchNode
/** Two pods with one address, of which the first is going. */
const TWINS = ['a-going', 'z-staying']

function twin(name: string, at: number): unknown {
  const going = at === 0 ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}
  return {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name, namespace: 'default', labels: { app: at === 0 ? 'client' : 'web' }, ...going },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', podIPs: [{ ip: '10.1.1.8' }] },
  }
}

beforeAll(async () => {
  machine = await makeNode()
  for (const iface of [POD_B, ...TWINS.map((name) => workloadInterface({ namespace: 'default', name }))]) plug(machine, iface)
  machine.put('policy.json', [onlyFrom('web', { app: 'web' }, { app: 'client' })])
  machine.put('pods.json', [
    labelled('a', '10.1.1.5', { node: 'n1', labels: { app: 'web' } }),
    labelled('b', '10.1.1.6', { node: 'n1', labels: { app: 'client' } }),
    ...TWINS.map(twin),
    labelled('far', '10.1.2.7', { node: 'n2', labels: { app: 'client' } }),
  ])
  machine.put('hosts.json', [
    hostEndpoint('eth0', { node: 'n1', interfaceName: 'eth0' }),
    globalPolicy('early', {
      selector: 'has(host)',
      types: ['Ingress'],
      preDNAT: true,
      applyOnForward: true,
      ingress: [{ action: 'Deny', source: { nets: ['192.0.2.66/32'] } }],
    }),
  ])
  await machine.agent('--health-port', '9099').event('dataplane.ready')
})

afterAll(async () => {
  await machine[Symbol.asyncDispose]()
})

/** The first flow that the command tells. */
function explain(line: string): Readonly<Record<string, unknown>> {
  const command = [...programCommand('cli'), 'explain', '--json', ...line.split(' ')]
  const record: unknown = JSON.parse(machine.sh(command.join(' ')))
  expect(at(record, 'warnings') ?? []).toEqual([])
  const flow = at(record, 'flows', 0)
  if (!isObject(flow)) throw new Error('no flow')
  return flow
}

interface Answer {
  readonly verdict: unknown
  /** by which the receiver lets it in */
  readonly ingress: unknown
}

function online(line: string): Answer {
  const { run, disagreement } = explain(line)
  expect(disagreement).toBe(null)
  const rules = at(run, 'flow', 'rules')
  return { verdict: at(run, 'verdict'), ingress: at(rules, 'ingress', 'number') }
}

function offline(line: string): Answer {
  const { now, disagreements } = explain(`--resources ${machine.resources} ${line}`)
  expect(disagreements).toEqual([])
  const checks = at(now, 'outcomes', 0, 'checks')
  const ingress: unknown = (Array.isArray(checks) ? checks : []).find(
    (check: unknown) => at(check, 'direction') === 'ingress' && at(check, 'stage') === 'pod',
  )
  const steps = at(ingress, 'steps')
  const last: unknown = Array.isArray(steps) ? steps.at(-1) : undefined
  const verdict = at(now, 'verdict')
  return { verdict, ingress: verdict === 'allow' ? (at(last, 'id') ?? undefined) : undefined }
}

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let part = value
  for (const key of path) part = typeof part === 'object' && part !== null ? Reflect.get(part, key) : undefined
  return part
}

describe('the node and its manifests say the same', () => {
  test.each([
    ['default/b default/a:8080', 'allow'],
    ['default/b default/a:81', 'deny'],
    ['default/a default/b:8080', 'allow'],
    ['--protocol udp default/b default/a:8080', 'deny'],
    ['--protocol icmp default/b default/a', 'deny'],
    ['default/b 10.96.0.10:80', 'allow'],
    ['default/a 10.96.0.10:81', 'drop'],
    ['--protocol icmp default/b 10.96.0.10', 'drop'],
    ['--protocol sctp default/b default/a:8080', 'deny'],
    ['--protocol udp default/a 198.51.100.7:53', 'allow'],
    ['default/b default/z-staying:8080', 'allow'],
    ['default/b default/z-staying:81', 'deny'],
    ['default/z-staying default/a:8080', 'deny'],
    ['10.1.2.7 default/a:8080', 'allow'],
    ['192.0.2.77 default/a:8080', 'deny'],
    ['192.0.2.77 192.0.2.1:30080', 'deny'],
    ['192.0.2.66 10.1.1.6:80', 'deny'],
    ['192.0.2.77 10.1.1.6:80', 'allow'],
  ])('%s: %s', (line, verdict) => {
    const answer = online(line)
    expect(answer).toEqual(offline(line))
    expect(answer.verdict).toBe(verdict)
  })

  test('nothing of the questions stays in the flow table', async () => {
    expect(await rows(machine, 'np_ct')).toBe(0)
  })

  test('a device that says no, by which rule', () => {
    const way = at(explain('192.0.2.66 10.1.1.6:80'), 'outcomes', 0)
    expect(way).toMatchObject({
      verdict: 'deny',
      checks: [
        { stage: 'early', direction: 'ingress', of: 'eth0', verdict: 'deny', rule: { name: 'GlobalNetworkPolicy/early ingress 0' } },
        { stage: 'pod', direction: 'ingress', of: '10.1.1.6', verdict: 'allow', rule: null },
      ],
    })
  })

  test('the agent names the rule', () => {
    expect(at(explain('default/b default/a:8080'), 'run', 'flow', 'rules', 'ingress', 'name')).toBe(
      'KubernetesNetworkPolicy/default/web ingress 0',
    )
  })
})
