// SPDX-License-Identifier: Apache-2.0
/** Policies of a directory of manifests against real connections: which get in, whose flows end, and what agents that
 * die and come back change. Layer: test. */
import { expect, test } from 'vitest'
import { Lab } from '../../lab/lab.ts'
import { startFlow } from '../../lab/traffic/traffic.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { answered as answeredAt, isSilent, until } from './asking.ts'
import { Manifests, node, pod } from './cluster.ts'
import { programCommand } from '../../testkit/base/program.ts'

const agentCommand = programCommand('agent')

const WEB = ['10.41.0.1', 'fd00:41::1'] as const
const NODES = [
  { ...node('a', '172.31.41.2', 'fd00:31:41::2'), spec: { podCIDRs: ['10.41.0.0/24', 'fd00:41::/64'] } },
  { ...node('b', '172.31.41.3', 'fd00:31:41::3'), spec: { podCIDRs: ['10.41.1.0/24', 'fd00:41:1::/64'] } },
]
const TYPES = ['Ingress', 'Egress'] as const
/** No pod may do anything, but clients may ask web. */
const POLICIES = [
  networkPolicy('nobody', { podSelector: {}, policyTypes: TYPES }),
  networkPolicy('web', {
    podSelector: { matchLabels: { app: 'web' } },
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: { matchLabels: { app: 'client' } } }], ports: [{ protocol: 'TCP', port: 8080 }] }],
  }),
  networkPolicy('clients', {
    podSelector: { matchLabels: { app: 'client' } },
    policyTypes: ['Egress'],
    egress: [{ to: [{ podSelector: { matchLabels: { app: 'web' } } }] }],
  }),
]

function networkPolicy(name: string, spec: object): object {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name, namespace: 'default' }, spec }
}

interface PodAt {
  readonly node: 'a' | 'b'
  readonly number: number
  readonly app: string
}

function labelled(name: string, { node: nodeName, number, app }: PodAt): object {
  const side = nodeName === 'a' ? '' : ':1'
  const of = pod(`default/${name}`, nodeName, `10.41.${nodeName === 'a' ? 0 : 1}.${number}`, `fd00:41${side}::${number}`)
  return { ...of, metadata: { name, namespace: 'default', labels: { app } } }
}

const PODS = {
  web: labelled('web', { node: 'a', number: 1, app: 'web' }),
  near: labelled('near', { node: 'a', number: 2, app: 'client' }),
  friend: labelled('friend', { node: 'b', number: 3, app: 'client' }),
  turncoat: labelled('turncoat', { node: 'b', number: 4, app: 'client' }),
  stranger: labelled('stranger', { node: 'b', number: 5, app: 'other' }),
}

function manifestsOf(pods: Readonly<Record<string, object>>, policies: readonly object[] = POLICIES): object[] {
  return [...NODES, ...Object.values(pods), ...policies]
}

const answered = (lab: Lab, from: string): Promise<number> => answeredAt(lab, from, WEB)
const untilAnswers = (what: () => Promise<boolean>): Promise<true | undefined> => until(HANG_MS, what)
const untilNone = (lab: Lab, from: string): Promise<true | undefined> => untilAnswers(() => isSilent(lab, from, WEB))

const flowTo = (lab: Lab, from: string) =>
  startFlow(lab, { from, to: WEB.map((address) => ({ proto: 'tcp', address, port: 8080 })), rate: 20, drainMs: 300 })

function starts(lab: Lab, name: string): string[] {
  const lines = lab.log(name).split('\n')
  return lines.filter((line) => line.includes('"dataplane.adopted"')).map((line) => /"written":(\{[^}]*\})/.exec(line)?.[1] ?? line)
}

test('policies hold for the pods that they select, at once, for flows that are open as well, and without an agent [once]', async () => {
  using manifests = new Manifests(manifestsOf(PODS))
  await using lab = await Lab.up({ name: 'tpolicy', resources: manifests.dir, agentCommand })
  expect([await answered(lab, 'near'), await answered(lab, 'friend'), await answered(lab, 'stranger')], lab.log('a')).toEqual([2, 2, 0])

  const [kept, cut] = [await flowTo(lab, 'friend'), await flowTo(lab, 'turncoat')]
  const turned = { ...PODS, turncoat: labelled('turncoat', { node: 'b', number: 4, app: 'other' }) }
  manifests.write(manifestsOf(turned))
  expect(await untilNone(lab, 'turncoat')).toBe(true)
  const lost = await cut.stop()
  expect(lost.streams.map((stream) => stream.lost > 0)).toEqual([true, true])

  const grown = {
    ...turned,
    late: labelled('late', { node: 'a', number: 6, app: 'client' }),
    foe: labelled('foe', { node: 'a', number: 7, app: 'other' }),
  }
  manifests.write(manifestsOf(grown))
  await lab.sync()
  expect(await untilAnswers(async () => (await answered(lab, 'late')) === 2), lab.log('a')).toBe(true)
  expect(await answered(lab, 'foe')).toBe(0)

  const before = ['a', 'b'].map((name) => starts(lab, name).length)
  for (const name of ['a', 'b']) await lab.agents.stop(name, 'SIGKILL')
  expect([await answered(lab, 'late'), await answered(lab, 'stranger'), await answered(lab, 'turncoat')]).toEqual([2, 0, 0])
  const refusedMeanwhile = answered(lab, 'stranger')
  for (const name of ['a', 'b']) {
    await lab.agents.start(name)
    await lab.agents.waitReady(name)
  }
  expect(await refusedMeanwhile).toBe(0)
  expect(['a', 'b'].flatMap((name, at) => starts(lab, name).slice(before[at]))).toEqual(['{}', '{}'])
  expect([await answered(lab, 'late'), await answered(lab, 'foe')]).toEqual([2, 0])
  for (const stream of (await kept.stop()).streams)
    expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })

  // veths and servers stay for a while, as those of pods that are deleted by force do
  manifests.write(manifestsOf({ near: PODS.near, friend: PODS.friend, stranger: PODS.stranger }))
  expect(await untilNone(lab, 'near')).toBe(true)
  expect([await answered(lab, 'late'), await answered(lab, 'foe')]).toEqual([0, 0])

  manifests.write(manifestsOf(grown, []))
  expect(await untilAnswers(async () => (await answered(lab, 'stranger')) === 2)).toBe(true)
})
