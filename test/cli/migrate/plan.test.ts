// SPDX-License-Identifier: Apache-2.0
/** The way to automatic host endpoints: what it comes to, and what stops it. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { planMigration, type MigrationInput, type MigrationPlan } from '#cli/migrate/plan.ts'
import { storeOf, v3, type Manifest } from '../../support/build.ts'

type Strings = Readonly<Record<string, string>>

const ALLOW = 'netplane-default-allow'
const OURS = { 'netplane.io/created-by': 'netplane-controllers' }

function hostEndpoint(
  name: string,
  { labels = {}, node = 'n1', ...spec }: { labels?: Strings; node?: string; [field: string]: unknown } = {},
): ApiObject {
  return asApiObject({
    ...{ apiVersion: 'netplane.io/v3', kind: 'HostEndpoint', metadata: { name, labels } },
    spec: { node, interfaceName: '*', profiles: [ALLOW], ...spec },
  })
}

function policy(name: string, spec: Manifest): Manifest {
  return v3('GlobalNetworkPolicy', name, spec)
}

const NODE = asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { zone: 'a' } } })
const NETWORK = asApiObject({
  apiVersion: 'netplane.io/v3',
  kind: 'NodeNetwork',
  metadata: { name: 'n1' },
  spec: { interfaces: [{ name: 'eth0', addresses: ['192.0.2.1'] }] },
})

function plan(endpoints: readonly ApiObject[], policies: readonly Manifest[] = [], more: Partial<MigrationInput> = {}): MigrationPlan {
  const world: Snapshot = storeOf(policies).snapshot
  return planMigration({ endpoints, nodes: [NODE], networks: [NETWORK], configuration: undefined, world, ...more })
}

/** Of the only node. */
function problems(...of: Parameters<typeof plan>): readonly string[] {
  return plan(...of).nodes.flatMap((node) => node.problems)
}

test('labels go to the node, and what is to be deleted is what is not automatic', () => {
  const all = [
    hostEndpoint('b', { labels: { env: 'x' } }),
    hostEndpoint('n1-auto-hep', { labels: { env: 'y', ...OURS } }),
    hostEndpoint('c', { interfaceName: 'eth0' }),
  ]
  const { nodes, isToEnable, newNodes } = plan(all)
  expect(nodes).toMatchObject([{ node: 'n1', labels: { env: 'x' }, isReady: false, problems: [] }])
  expect(nodes[0]?.old.map(({ metadata }) => metadata.name)).toEqual(['b'])
  expect({ isToEnable, newNodes }).toEqual({ isToEnable: true, newNodes: [] })
  // a name that only ends so is no sign of it
  expect(plan([hostEndpoint('x-auto-hep')]).nodes[0]?.old).toHaveLength(1)
})

test('an automatic endpoint that has the labels is what is compared; what is done already is not done again', () => {
  const made = hostEndpoint('n1-auto-hep', { labels: { env: 'x', zone: 'a', ...OURS } })
  const labelled = { ...NODE, metadata: { ...NODE.metadata, labels: { zone: 'a', env: 'x' } } }
  const { nodes } = plan([hostEndpoint('b', { labels: { env: 'x' } }), made], [], { nodes: [labelled] })
  expect(nodes).toMatchObject([{ labels: {}, isReady: true, problems: [] }])
})

test('without the copied label a policy would no longer select it: the label goes first', () => {
  const upgrade = policy('allow-all-upgrade', {
    selector: 'has(host-endpoint-upgrade)',
    ingress: [{ action: 'Allow' }],
    egress: [{ action: 'Allow' }],
  })
  const old = hostEndpoint('old', { labels: { 'host-endpoint-upgrade': '' }, profiles: [] })
  expect(problems([old], [upgrade])).toEqual([])
  const bare = hostEndpoint('n1-auto-hep', { labels: OURS })
  // made without it, as by another's hand
  expect(plan([old, bare], [upgrade]).nodes[0]?.isReady).toBe(false)
})

test('what no policy decides is denied of old ones without profile, and allowed of automatic ones', () => {
  const bare = hostEndpoint('old', { profiles: [] })
  expect(problems([bare])).toEqual([
    'ingress, of the host itself: what no policy decides is denied and becomes allowed',
    'egress, of the host itself: what no policy decides is denied and becomes allowed',
  ])
  const closed = { types: ['Ingress', 'Egress'], selector: 'all()', ingress: [{ action: 'Allow', protocol: 'TCP' }], egress: [] }
  expect(problems([bare], [policy('all', closed)])).toEqual([])
  // a rule that passes on leads past the end of its tier
  const passing = { ...closed, ingress: [{ action: 'Pass', protocol: 'TCP' }] }
  expect(problems([bare], [policy('all', passing)])).toHaveLength(1)
  const open = v3('Profile', 'open', { ingress: [{ action: 'Allow' }], egress: [{ action: 'Allow', protocol: 'TCP' }] })
  expect(problems([hostEndpoint('old', { profiles: ['open'] })], [open])).toEqual([
    expect.stringMatching(/^egress, of the host itself: what no policy decides is \[.*\] and becomes allowed$/),
  ])
})

test('a policy that selects one of the two alone is named, of each stage', () => {
  const spec = { selector: "zone == 'a'", ingress: [{ action: 'Deny', protocol: 'TCP' }, { action: 'Allow' }] }
  expect(problems([hostEndpoint('old')], [policy('zones', spec)])).toEqual([
    expect.stringContaining('ingress, of the host itself: policies none become default: GlobalNetworkPolicy/zones deny'),
  ])
  for (const [stage, more] of [
    ['before services are translated', { preDNAT: true, applyOnForward: true }],
    ['untracked', { doNotTrack: true, applyOnForward: true }],
    ['what passes through', { applyOnForward: true }],
  ] as const)
    expect(problems([hostEndpoint('old')], [policy('zones', { ...spec, ...more })]).join('\n')).toContain(
      `ingress, ${stage}: policies none become`,
    )
})

test('policies that have it as a peer are named, where they will see it otherwise', () => {
  const from = (selector: string): Manifest =>
    policy('peers', { selector: "app == 'web'", ingress: [{ action: 'Allow', source: { selector } }] })
  const old = hostEndpoint('old', { labels: { role: 'db' }, expectedIPs: ['192.0.2.1'] })
  expect(problems([old], [from("role == 'db'")])).toEqual([])
  expect(problems([old], [from("zone == 'a'")])).toEqual([
    'GlobalNetworkPolicy/peers has 192.0.2.1 as a peer by its labels, or will have it',
  ])
  const elsewhere = hostEndpoint('old', { labels: { role: 'db' }, expectedIPs: ['198.51.100.9'] })
  expect(problems([elsewhere], [from("role == 'db'")])).toHaveLength(1)
})

test.each([
  ['a label that the node has otherwise', [hostEndpoint('old', { labels: { zone: 'b' } })], 'label zone has the values "a" and "b"'],
  [
    'two endpoints that differ in a label',
    [hostEndpoint('old', { labels: { env: 'x' } }), hostEndpoint('other', { labels: { env: 'y' } })],
    'label env has the values "x" and "y"',
  ],
  [
    'a node that is not there',
    [hostEndpoint('old', { node: 'gone' })],
    'there is no Node of this name: an automatic endpoint is never made',
  ],
  [
    'named ports',
    [hostEndpoint('old', { ports: [{ name: 'web', protocol: 'TCP', port: 80 }] })],
    'it has named ports, and an automatic one has none',
  ],
])('%s stops it', (_, endpoints, problem) => {
  expect(problems(endpoints)).toEqual([problem])
})

test('an agent that is too old, and a configuration that makes none, stop it', () => {
  expect(problems([hostEndpoint('old')], [], { networks: [] })).toEqual(['its agent has not said its interfaces, or is too old to'])
  const configuration = asApiObject({
    ...{ apiVersion: 'netplane.io/v3', kind: 'ControllersConfiguration', metadata: { name: 'default' } },
    spec: { controllers: { node: { syncLabels: 'Disabled', hostEndpoint: { createDefaultHostEndpoint: 'Disabled' } } } },
  })
  expect(plan([hostEndpoint('old')], [], { configuration }).problems).toHaveLength(2)
})

test('nodes that had none are named while automatic ones are still to be asked for', () => {
  const other = asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n2' } })
  expect(plan([hostEndpoint('old')], [], { nodes: [NODE, other] }).newNodes).toEqual(['n2'])
})
