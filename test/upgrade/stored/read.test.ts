// SPDX-License-Identifier: Apache-2.0
/** Stored objects of any kind, one rule at a time. Layer: test. */
import { describe, expect, test } from 'vitest'
import { outcomeLines, type Outcome } from '#upgrade/stored/outcome.ts'
import { readStored } from '#upgrade/stored/read.ts'
import { otherUid } from '#upgrade/stored/uid.ts'
import type { Manifest } from '../../support/build.ts'
import { raw, storedBy, uidOf } from './stored.ts'

/** Without what is made where nothing is stored. */
function outcomes(...objects: readonly unknown[]): readonly Outcome[] {
  return readStored({ objects, environment: {} }).outcomes.filter(({ of }) => of !== undefined)
}

function lines(...objects: readonly unknown[]): readonly string[] {
  return outcomes(...objects).flatMap(outcomeLines)
}

function objectOf(...objects: readonly unknown[]): Manifest {
  const [outcome] = outcomes(...objects)
  return outcome !== undefined && 'object' in outcome ? { ...outcome.object } : {}
}

const SET = { nets: ['10.0.0.0/8'] }
const LABELLED = { spec: SET, labels: { team: 'shop', 'netplane.io/x': 'y' }, annotations: { note: 'n' } }
const CREATED = { creationTimestamp: '2024-05-02T08:00:00Z' }

describe('metadata', () => {
  test.each([
    ['beside the annotation', storedBy('3.27')('GlobalNetworkSet', 'a', LABELLED)],
    ['in the annotation', storedBy('3.29.2')('GlobalNetworkSet', 'a', LABELLED)],
    ['without an annotation', raw('GlobalNetworkSet', 'a', LABELLED)],
  ])('labels and annotations are found %s', (_where, object) => {
    const { labels, annotations } = LABELLED
    expect(objectOf(object)).toEqual({
      apiVersion: 'netplane.io/v3',
      kind: 'GlobalNetworkSet',
      metadata: { name: 'a', labels, annotations, ...CREATED },
      spec: SET,
    })
  })

  test('what the annotation says goes before what stands beside it', () => {
    const annotation = JSON.stringify({ labels: { a: 'inner' }, creationTimestamp: '2020-01-01T00:00:00Z', finalizers: ['x/y'] })
    const object = raw('GlobalNetworkSet', 'a', {
      spec: SET,
      labels: { a: 'outer', b: 'b' },
      annotations: { 'netplane.io/metadata': annotation },
    })
    expect(objectOf(object)['metadata']).toEqual({
      ...{ name: 'a', labels: { a: 'inner', b: 'b' } },
      ...{ creationTimestamp: '2020-01-01T00:00:00Z', finalizers: ['x/y'] },
    })
  })

  test.each<[string, unknown, string]>([
    ['no object', 5, 'refused an object without a kind\n  kind: –: is missing'],
    ['no name', { kind: 'Tier', metadata: {} }, 'refused Tier\n  metadata.name: –: is missing'],
    [
      'a broken annotation',
      raw('Tier', 'a', { annotations: { 'netplane.io/metadata': '{' } }),
      "refused Tier a\n  metadata.annotations['netplane.io/metadata']: –: is no JSON",
    ],
    [
      'a label that is a number',
      raw('Tier', 'a', { metadata: { labels: { a: 1 } } }),
      "refused Tier a\n  metadata.labels['a']: –: must be text",
    ],
    [
      'an object that goes',
      raw('Tier', 'a', { metadata: { deletionTimestamp: 'now' } }),
      'refused Tier a\n  metadata.deletionTimestamp: –: the object is being deleted: wait until it is gone',
    ],
  ])('%s is refused', (_what, object, line) => {
    expect(lines(object).join('\n')).toBe(line)
  })
})

describe('the name and tier of a policy', () => {
  const TIER = raw('Tier', 'security', { spec: { order: 100 } })
  const annotated = (name: string) => ({ 'netplane.io/metadata': JSON.stringify({ name }) })

  test.each<[string, Manifest, string]>([
    ['stored by 3.15', storedBy('3.15')('NetworkPolicy', 'shop/web'), 'web in default'],
    ['stored by 3.29.2, without its name', storedBy('3.29.2')('NetworkPolicy', 'shop/web'), 'web in default'],
    ['stored by 3.30, with its name', storedBy('3.30')('NetworkPolicy', 'shop/web'), 'web in default'],
    ['made with the prefix', raw('NetworkPolicy', 'shop/default.web', { annotations: annotated('default.web') }), 'default.web in default'],
    ['of another tier', raw('NetworkPolicy', 'shop/security.web', { spec: { tier: 'security' } }), 'security.web in security'],
    ['of a tier that only its name tells', raw('NetworkPolicy', 'shop/security.web'), 'security.web in security'],
    ['with a dot, and of no tier', raw('NetworkPolicy', 'shop/my.web'), 'my.web in default'],
    ['with a dot behind the prefix', storedBy('3.20')('NetworkPolicy', 'shop/my.web'), 'my.web in default'],
    ['that is the prefix alone', raw('NetworkPolicy', 'shop/default.'), 'refused'],
    ['of an empty tier', storedBy('3.20')('GlobalNetworkPolicy', 'all', { spec: { tier: '' } }), 'all in default'],
    [
      'of another tier, with the prefix',
      raw('NetworkPolicy', 'shop/default.web', { spec: { tier: 'security' } }),
      'default.web in security',
    ],
    ['a staged one', storedBy('3.30')('StagedGlobalNetworkPolicy', 'all'), 'all in default'],
  ])('%s', (_what, object, expected) => {
    const [, outcome] = outcomes(TIER, object)
    if (outcome === undefined || !('object' in outcome)) return expect(outcome?.kind).toBe(expected)
    const { metadata, spec } = outcome.object
    const { tier = 'default' } = spec as { readonly tier?: string }
    expect(`${metadata.name} in ${tier === '' ? 'default' : tier}`).toBe(expected)
    expect(metadata['labels']).toEqual({ 'netplane.io/tier': tier === '' ? 'default' : tier })
  })

  test.each([
    [
      'knp.default.web',
      'left GlobalNetworkPolicy knp.default.web: it is made of a NetworkPolicy of networking.k8s.io, which is read itself',
    ],
    [
      'ossg.default.web',
      'refused GlobalNetworkPolicy ossg.default.web\n  metadata.name: "ossg.default.web": is of OpenStack, which is not supported',
    ],
  ])('%s is of another program', (name, expected) => {
    expect(lines(raw('GlobalNetworkPolicy', name)).join('\n')).toBe(expected)
  })

  test('two that come to one name are refused, each with the name of the other', () => {
    const both = [storedBy('3.20')('NetworkPolicy', 'shop/web', { spec: { types: ['Ingress'] } }), raw('NetworkPolicy', 'shop/web')]
    expect(lines(...both)).toEqual([
      'refused NetworkPolicy shop/default.web',
      '  metadata.name: "web": NetworkPolicy shop/web has the same name here',
      'refused NetworkPolicy shop/web',
      '  metadata.name: "web": NetworkPolicy shop/default.web has the same name here',
    ])
    // in another namespace it is another
    expect(lines(both[0], raw('NetworkPolicy', 'other/web')).filter((line) => line.startsWith('refused'))).toEqual([])
  })
})

describe('directions of a policy', () => {
  const spec = (of: Manifest) => objectOf(raw('NetworkPolicy', 'shop/web', { spec: of }))['spec']

  test.each<[Manifest, readonly string[]]>([
    [{}, ['Ingress']],
    [{ ingress: [{ action: 'Allow' }] }, ['Ingress']],
    [{ ingress: [], egress: [{ action: 'Allow' }] }, ['Egress']],
    [{ ingress: [{ action: 'Allow' }], egress: [{ action: 'Allow' }] }, ['Ingress', 'Egress']],
    [{ types: [], egress: [{ action: 'Allow' }] }, ['Egress']],
    [{ types: ['Egress'] }, ['Egress']],
  ])('of %j are written out', (of, types) => {
    expect(spec(of)).toMatchObject({ types })
  })

  test('of one that is staged to go are not', () => {
    expect(objectOf(raw('StagedNetworkPolicy', 'shop/web', { spec: { stagedAction: 'Delete' } }))['spec']).toEqual({
      stagedAction: 'Delete',
    })
  })
})

test.each<[string, Manifest, string]>([
  [
    'words in another case',
    { types: ['ingress'], ingress: [{ action: 'ALLOW', protocol: 'Tcp' }] },
    '{"types":["Ingress"],"ingress":[{"action":"Allow","protocol":"tcp"}]}',
  ],
  ['null, which is missing', { order: null, types: ['Ingress'], selector: null }, '{"types":["Ingress"]}'],
  [
    'labels of older versions',
    {
      types: ['Ingress'],
      selector: "netplane/k8s_ns == 'a'",
      ingress: [{ action: 'Allow', source: { selector: 'has(k8s_ns/label/x) && !has(y)' } }],
    },
    '{"types":["Ingress"],"selector":"netplane.io/namespace == \\"a\\"","ingress":[{"action":"Allow","source":{"selector":"(has(pcns.x) && !has(y))"}}]}',
  ],
])('a policy with %s', (_what, spec, expected) => {
  expect(JSON.stringify(objectOf(raw('NetworkPolicy', 'shop/web', { spec }))['spec'])).toBe(expected)
})

test.each<[Manifest, string]>([
  [{ selector: 'a ==' }, 'spec.selector: "a =="'],
  [{ slector: 'all()' }, 'spec.slector: "all()"'],
  [{ ingress: [{ action: 'Allow', http: { methods: ['GET'] } }] }, 'spec.ingress[0].http: {"methods":["GET"]}'],
  [{ ingress: [{ action: 'Permit' }] }, 'spec.ingress[0].action: "Permit"'],
])('a policy that cannot be read is refused with its field: %j', (spec, fault) => {
  const [head, first] = lines(raw('NetworkPolicy', 'shop/web', { spec }))
  expect(head).toBe('refused NetworkPolicy shop/web')
  expect(first).toContain(`  ${fault}: `)
})

test('a rule that would log stays, and the report says that it is not in force', () => {
  expect(
    lines(
      storedBy('3.20')('GlobalNetworkPolicy', 'log', { spec: { types: ['Egress'], egress: [{ action: 'Log' }, { action: 'Allow' }] } }),
    ),
  ).toContain('  spec.egress[0].action: "Log" → "Log": is not in force: Log is not supported in eBPF mode: the rule is left out')
})

describe('a pool', () => {
  const pool = (spec: Manifest): string =>
    lines(raw('IPPool', 'p', { spec: { cidr: '10.244.0.0/16', blockSize: 26, nodeSelector: 'all()', ...spec } })).join('\n')
  const specOf = (spec: Manifest) => objectOf(raw('IPPool', 'p', { spec }))['spec']

  test.each<[Manifest, Manifest]>([
    [{ cidr: '10.244.0.0/16' }, { cidr: '10.244.0.0/16', blockSize: 26, nodeSelector: 'all()' }],
    [{ cidr: '10.0.0.0/28' }, { cidr: '10.0.0.0/28', blockSize: 28, nodeSelector: 'all()' }],
    [{ cidr: 'FD00:0:42::/56' }, { cidr: 'fd00:0:42::/56', blockSize: 122, nodeSelector: 'all()' }],
    [
      { cidr: '10.244.0.0/16', ipip: { enabled: false, mode: 'always' }, 'nat-outgoing': true },
      { ...WHOLE(), ipipMode: 'Never', natOutgoing: true },
    ],
    [
      { cidr: '10.244.0.0/16', natOutgoing: true, 'nat-outgoing': false },
      { ...WHOLE(), natOutgoing: true },
    ],
    [
      { ...WHOLE(), vxlanMode: 'crosssubnet', ipipMode: '' },
      { ...WHOLE(), vxlanMode: 'CrossSubnet' },
    ],
  ])('%j is %j', (before, after) => {
    expect(specOf(before)).toEqual(after)
  })

  test('that has every field of this version is carried as it is', () => {
    expect(pool({ vxlanMode: 'Always', ipipMode: 'Never', natOutgoing: true, disabled: true })).toBe('carried IPPool p as p')
  })

  test.each<[Manifest, string]>([
    [{ ipip: { enabled: true } }, 'spec.ipipMode: "Always"'],
    [{ ipip: { enabled: true, mode: 'cross-subnet' } }, 'spec.ipipMode: "CrossSubnet"'],
    [{ ipipMode: 'CROSSSUBNET' }, 'spec.ipipMode: "CrossSubnet"'],
    [{ ipip: { enabled: 'yes' } }, 'spec.ipip: {"enabled":"yes"}'],
    [{ 'nat-outgoing': 'yes' }, 'spec.nat-outgoing: "yes"'.replace('.nat-outgoing', "['nat-outgoing']")],
    [{ cidr: '10.244.0.0/33' }, 'spec.cidr: "10.244.0.0/33"'],
  ])('with %j is refused', (spec, fault) => {
    expect(pool(spec)).toContain(`refused IPPool p\n  ${fault}: `)
  })
})

function WHOLE(): Manifest {
  return { cidr: '10.244.0.0/16', blockSize: 26, nodeSelector: 'all()' }
}

describe('owners', () => {
  const owner = storedBy('3.27')('GlobalNetworkSet', 'owner', { spec: SET })
  const uid = uidOf('GlobalNetworkSet', 'owner')
  const reference = (apiVersion: string, of: string) => ({ apiVersion, kind: 'GlobalNetworkSet', name: 'owner', uid: of, controller: true })

  test.each([
    ['the UID that is stored', reference('crd.netplane.io/v1', uid)],
    ['the UID that clients saw', reference('netplane.io/v3', otherUid(uid) ?? '')],
  ])('of ours are found by %s, and wait for the new one', (_which, said) => {
    const owned = storedBy('3.29.2')('GlobalNetworkSet', 'owned', { spec: SET, metadata: { ownerReferences: [said] } })
    const outcome = outcomes(owner, owned).find(({ of }) => of?.name === 'owned')
    expect(outcome).toMatchObject({ kind: 'changed', owners: [{ kind: 'GlobalNetworkSet', name: 'owner', controller: true }] })
    expect(outcome).not.toHaveProperty('object.metadata.ownerReferences')
  })

  test('that are not there any more are left out, and those of other groups stay', () => {
    const foreign = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'x' }
    const references = [foreign, reference('netplane.io/v3', '51fdcd2c-eb0b-40c8-834c-8986d0bdd420')]
    const owned = raw('GlobalNetworkSet', 'owned', { spec: SET, metadata: { ownerReferences: references } })
    expect(outcomes(owned)).toMatchObject([{ kind: 'changed', owners: [], object: { metadata: { ownerReferences: [foreign] } } }])
    expect(lines(owned)[1]).toMatch(/^ {2}metadata\.ownerReferences\[1\]: .* → –: there is no such owner any more$/)
  })
})

test.each([
  ['BGPPeer', 'refused BGPPeer a\n  –: BGP is not supported'],
  ['IPReservation', 'refused IPReservation a\n  –: addresses cannot be reserved'],
  ['NetplaneNodeStatus', 'left NetplaneNodeStatus a: it tells of BGP'],
  ['Surprise', 'refused Surprise a\n  kind: "Surprise": is not a kind of which this version knows'],
])('%s is not carried', (kind, expected) => {
  expect(lines(raw(kind, 'a')).join('\n')).toContain(expected)
})

test('where no tier and no configuration is stored, those of older versions are made', () => {
  const made = readStored({ objects: [], environment: {} }).outcomes
  expect(made.flatMap((outcome) => ('object' in outcome ? [outcome.object] : []))).toEqual([
    { apiVersion: 'netplane.io/v3', kind: 'Tier', metadata: { name: 'default' }, spec: { order: 1_000_000, defaultAction: 'Deny' } },
    {
      ...{ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' } },
      spec: { bpfEnabled: false, defaultEndpointToHostAction: 'Drop', vxlanVNI: 4096 },
    },
  ])
})

test('objects come in the order in which they are to be made', () => {
  const kinds = ['HostEndpoint', 'NetworkPolicy', 'GlobalNetworkSet', 'IPPool', 'FelixConfiguration', 'Tier']
  const all = readStored({ objects: kinds.map((kind) => raw(kind, 'default')), environment: {} })
  expect(all.outcomes.map((outcome) => ('object' in outcome ? outcome.object.kind : outcome.of.kind))).toEqual(kinds.toReversed())
})
