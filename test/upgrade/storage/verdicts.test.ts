// SPDX-License-Identifier: Apache-2.0
/** Verdicts of what is stored, and of what has become of it. Layer: test. */
import { describe, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { addressDifferences } from '#upgrade/storage/verdicts/addresses.ts'
import { compareVerdicts } from '#upgrade/storage/verdicts/compare.ts'
import { poolDifferences } from '#upgrade/storage/verdicts/pools.ts'
import { settingDifferences } from '#upgrade/storage/verdicts/settings.ts'
import { storedObjects, worldOf } from '#upgrade/storage/verdicts/worlds.ts'
import { readInstallation, type InstallationInput } from '#upgrade/stored/installation.ts'
import type { V3Object } from '#upgrade/stored/outcome.ts'
import { namespace, type Manifest } from '../../support/build.ts'
import { common, fixture, fixtureNames } from '../stored/installation.ts'
import { NOW, pod } from '../stored/addresses.ts'
import { raw } from '../stored/stored.ts'
import { manyPods } from './many-pods.ts'

/** `PODS=5000`: as the figure of docs/upgrade-import.md is measured. */
const PODS = Number(process.env['PODS'] ?? 400)

function carried(input: InstallationInput): readonly V3Object[] {
  return readInstallation(input).outcomes.flatMap((outcome) => ('object' in outcome ? [outcome.object] : []))
}

const SHOP: readonly Manifest[] = [namespace('shop', { team: 'sales' }), namespace('office', { team: 'sales' })]
const labelled = (name: string, app: string, address: string): Manifest => {
  const { metadata, ...rest } = pod(name, 'a', address)
  return { ...rest, metadata: { ...(isObject(metadata) ? metadata : {}), labels: { app } } }
}
const PODS_OF_SHOP = [
  ...[labelled('shop/web-1', 'web', '10.244.0.5'), labelled('shop/web-2', 'web', '10.244.0.6'), labelled('shop/db', 'db', '10.244.0.7')],
  labelled('office/desk', 'desk', '10.244.0.8'),
]

/** What is stored, against what it becomes with a change. */
function compared(stored: readonly unknown[], change: (objects: readonly V3Object[]) => readonly V3Object[] = (objects) => objects) {
  const input = { objects: stored, pods: PODS_OF_SHOP, nodes: [], environment: {}, now: NOW }
  const both = [...SHOP, ...PODS_OF_SHOP]
  return compareVerdicts(worldOf([...storedObjects(stored), ...both]).snapshot, worldOf([...change(carried(input)), ...both]).snapshot)
}

const WEB = raw('NetworkPolicy', 'shop/default.web', {
  spec: {
    selector: "app == 'web'",
    ingress: [{ action: 'allow', protocol: 'TCP', source: { selector: "app == 'db'" }, destination: { ports: [80] } }],
  },
})
const withSpec =
  (kind: string, spec: object) =>
  (objects: readonly V3Object[]): readonly V3Object[] =>
    objects.map((object) => (object.kind === kind ? { ...object, spec: { ...(object.spec as object), ...spec } } : object))

test.each(fixtureNames())('%s: what is carried judges as what is stored', (name) => {
  const input = fixture(name)
  // an administrator deletes them first
  const refused = new Set(readInstallation(input).outcomes.flatMap((one) => (one.kind === 'refused' ? [one.of.uid] : [])))
  const objects = input.objects.filter(
    (one) => !(isObject(one) && isObject(one['metadata']) && refused.has(String(one['metadata']['uid']))),
  )
  const both = [...SHOP, ...input.pods, ...input.nodes]
  const [before, after] = [worldOf([...storedObjects(objects), ...both]), worldOf([...carried({ ...input, objects }), ...both])]
  expect(compareVerdicts(before.snapshot, after.snapshot).differences).toEqual([])
  expect(poolDifferences(before.snapshot, after.snapshot)).toEqual([])
  expect(settingDifferences({ ...before.snapshot, environment: input.environment }, after.snapshot)).toEqual([])
  expect(before.unreadable).toEqual([])
})

describe('a difference is told with both deciding rules', () => {
  test('nothing is different where all is carried', () => {
    expect(compared([WEB])).toMatchObject({ classes: 5, different: 0, differences: [] })
  })

  test('of another action', () => {
    const [rule] = [{ action: 'Deny', protocol: 'TCP', source: { selector: "app == 'db'" }, destination: { ports: [80] } }]
    expect(compared([WEB], withSpec('NetworkPolicy', { ingress: [rule] })).differences).toEqual([
      'tcp shop/db:40001 > shop/web-1 (2 alike):80, ingress of shop/web-1: allow by NetworkPolicy/shop/web rule 0 becomes deny by NetworkPolicy/shop/web rule 0',
    ])
  })

  test('of another port', () => {
    const [rule] = [{ action: 'Allow', protocol: 'TCP', source: { selector: "app == 'db'" }, destination: { ports: [81] } }]
    expect(compared([WEB], withSpec('NetworkPolicy', { ingress: [rule] })).differences).toEqual([
      'tcp shop/db:40001 > shop/web-1 (2 alike):80, ingress of shop/web-1: allow by NetworkPolicy/shop/web rule 0 becomes deny by the end of tier default',
      'tcp shop/db:40001 > shop/web-1 (2 alike):81, ingress of shop/web-1: deny by the end of tier default becomes allow by NetworkPolicy/shop/web rule 0',
    ])
  })

  test('of a policy that is not there, for all that it kept out', () => {
    const { different, differences } = compared([WEB], (objects) => objects.filter(({ kind }) => kind !== 'NetworkPolicy'))
    expect(different).toBe(11)
    expect(differences[0]).toMatch(/: deny by the end of tier default becomes allow by Profile\/kns.shop rule 0$/)
  })

  test('of a network set that lacks a prefix', () => {
    const stored = [
      raw('GlobalNetworkSet', 'partners', { labels: { role: 'partner' }, spec: { nets: ['198.51.100.0/24', '203.0.113.0/28'] } }),
      raw('GlobalNetworkPolicy', 'default.out', {
        spec: {
          selector: "app == 'desk'",
          egress: [{ action: 'Deny', destination: { selector: "role == 'partner'" } }, { action: 'Allow' }],
        },
      }),
    ]
    expect(compared(stored).different).toBe(0)
    const { differences } = compared(stored, withSpec('GlobalNetworkSet', { nets: ['198.51.100.0/24'] }))
    expect(differences[0]).toBe(
      'tcp office/desk:40001 > 203.0.113.0:1, egress of office/desk: deny by GlobalNetworkPolicy/out rule 0 becomes allow by GlobalNetworkPolicy/out rule 1',
    )
  })

  test('of one pod of several alike, which a rule means by its address', () => {
    const stored = [
      raw('GlobalNetworkPolicy', 'default.db', {
        spec: { selector: "app == 'db'", ingress: [{ action: 'Deny', source: { nets: ['10.244.0.6/32'] } }, { action: 'Allow' }] },
      }),
    ]
    const { differences } = compared(stored, withSpec('GlobalNetworkPolicy', { ingress: [{ action: 'Allow' }] }))
    expect(differences[0]).toBe(
      'tcp shop/web-2:40001 > shop/db:1, ingress of shop/db: deny by GlobalNetworkPolicy/db rule 0 becomes allow by GlobalNetworkPolicy/db rule 0',
    )
  })

  test('of a host endpoint, by stage', () => {
    const stored = [
      raw('HostEndpoint', 'a-eth0', { labels: { host: 'a' }, spec: { node: 'a', interfaceName: 'eth0', expectedIPs: ['192.0.2.1'] } }),
    ]
    const { differences } = compared(stored, (objects) => objects.filter(({ kind }) => kind !== 'HostEndpoint'))
    expect(differences[0]).toMatch(/ingress of host endpoint a-eth0, normal: deny by no policy becomes open by no policy$/)
  })
})

test('a pool that was disabled stays so, and every other difference of pools is told', () => {
  const stored = [
    raw('IPPool', 'old', { spec: { cidr: '10.1.0.0/16', disabled: true } }),
    raw('IPPool', 'gone', { spec: { cidr: '10.2.0.0/16' } }),
  ]
  const before = worldOf(storedObjects(stored)).snapshot
  const objects = carried({ objects: stored, pods: [], nodes: [], environment: {}, now: NOW })
  expect(poolDifferences(before, worldOf(objects).snapshot)).toEqual([])
  const enabled = withSpec('IPPool', { disabled: false })(objects.filter(({ metadata }) => metadata.name !== 'gone'))
  expect(poolDifferences(before, worldOf(enabled).snapshot)).toEqual([
    'IPPool gone is not there any more',
    'IPPool old: assigns was "none" and is "all"',
  ])
})

test('a setting that the environment said is told where an object of a node now says otherwise', () => {
  const stored = [raw('FelixConfiguration', 'node.a', { spec: { defaultEndpointToHostAction: 'Drop' } })]
  const environment = { FELIX_DEFAULTENDPOINTTOHOSTACTION: 'ACCEPT' }
  const after = worldOf(carried({ objects: stored, pods: [], nodes: [], environment, now: NOW })).snapshot
  expect(settingDifferences({ ...worldOf(storedObjects(stored)).snapshot, environment }, after)).toEqual([
    'FelixConfiguration: defaultEndpointToHostAction of node.a was "ACCEPT" and is "Drop"',
  ])
})

describe('addresses of pods', () => {
  const { objects, pods, nodes, ...rest } = common('3.30', 'netplane')
  const blocks = carried({ objects, pods, nodes, ...rest }).filter(({ kind }) => kind === 'IPAMBlock')
  const differences = (specs: readonly object[], of: readonly unknown[] = pods) =>
    addressDifferences({ pods: of, nodes, objects, blocks: specs.map((spec) => parseIPBlock({ spec })) })

  test('each is in a block of its node, with its sandbox', () => {
    expect(differences(blocks.map(({ spec }) => spec as object))).toEqual([])
  })

  test('what is not so is told', () => {
    const specs = blocks.map(({ spec }) => spec as { readonly allocations: readonly object[] })
    expect(differences(specs.map((spec) => ({ ...spec, node: 'c' })))).toEqual([
      '10.244.0.5 of pod shop/web is in a block of node c, and the pod is on a',
      '10.244.0.70 of pod shop/db is in a block of node c, and the pod is on b',
    ])
    expect(differences(specs.map((spec) => ({ ...spec, allocations: [] })))[0]).toBe('10.244.0.5 of pod shop/web is free in its block')
    const other = specs.map((spec) => ({ ...spec, allocations: spec.allocations.map((one) => ({ ...one, containerId: 'other' })) }))
    expect(differences(other)[0]).toBe("10.244.0.5 of pod shop/web is that of sandbox other in its block, and the pod's is c-shop-web")
    const renamed = specs.map((spec) => ({ ...spec, allocations: spec.allocations.map((one) => ({ ...one, pod: 'other' })) }))
    expect(differences(renamed)[0]).toBe('10.244.0.5 of pod shop/web is that of pod shop/other in its block')
    expect(differences(specs.slice(1))[0]).toBe('10.244.0.5 of pod shop/web is in no block')
  })
})

test(`many pods (${PODS}), no two with the same labels, are a few hundred classes`, { timeout: 240_000 }, () => {
  const { cluster, stored } = manyPods({ pods: PODS, namespaces: 10, apps: PODS < 5000 ? 4 : 20, nodes: PODS < 5000 ? 5 : 50 })
  const objects = carried({ objects: stored, pods: [], nodes: [], environment: {}, now: NOW })
  const before = worldOf([...storedObjects(stored), ...cluster]).snapshot
  const secondsFor = (after: readonly unknown[], different: number): string => {
    const began = performance.now()
    const found = compareVerdicts(before, worldOf([...after, ...cluster]).snapshot)
    expect(found.classes).toBeLessThan(500)
    expect(Math.min(found.different, 100)).toBe(different)
    // a report stays readable
    expect(found.differences).toHaveLength(Math.min(different, 20))
    const seconds = (performance.now() - began) / 1000
    expect(seconds).toBeLessThan(60)
    return `${found.classes} classes, ${found.pairs} pairs, ${found.different} differences in ${seconds.toFixed(1)} s`
  }
  const same = secondsFor(objects, 0)
  const other = secondsFor(withSpec('GlobalNetworkPolicy', { ingress: [{ action: 'Allow' }] })(objects), 100)
  if (PODS >= 5000) console.log(`${PODS} pods: ${same}; ${other}`)
})
