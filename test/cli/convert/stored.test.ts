// SPDX-License-Identifier: Apache-2.0
/** Objects as older versions stored them, as netplane.io/v3. Layer: test. */
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { convertObject } from '../../../cli/convert/command.ts'

const OPTIONS = { namespace: 'default', namesOnly: false }
const ANNOTATION = 'netplane.io/metadata'

function convert(kind: string, metadata: object, spec: object = {}) {
  return convertObject({ apiVersion: 'crd.netplane.io/v1', kind, metadata, spec }, OPTIONS)
}

function objectOf(kind: string, metadata: object, spec?: object): unknown {
  const { object, rejected } = convert(kind, metadata, spec)
  expect(rejected).toEqual([])
  return object
}

test('metadata is what the annotation says, over what the object says', () => {
  const shown = { uid: 'x', creationTimestamp: null, labels: { a: 'inner', b: 'inner' }, annotations: { c: 'inner' } }
  const annotations = { [ANNOTATION]: JSON.stringify(shown), d: 'outer' }
  const labels = { a: 'outer', 'netplane.io/tier': 'default' }
  expect(objectOf('Tier', { name: 't', resourceVersion: '5', labels, annotations }, { order: 5 })).toEqual({
    apiVersion: 'netplane.io/v3',
    kind: 'Tier',
    metadata: { name: 't', labels: { ...labels, a: 'inner', b: 'inner' }, annotations: { c: 'inner', d: 'outer' } },
    spec: { order: 5 },
  })
})

test.each<{ readonly title: string; readonly name: string; readonly inner?: object; readonly tier?: string; readonly is: object }>([
  { title: 'of up to v3.28', name: 'default.web', is: { name: 'web', tier: undefined } },
  { title: 'of up to v3.28 with a tier', name: 'default.web', tier: 'default', is: { name: 'web', tier: undefined } },
  { title: 'of another tier', name: 'sec.web', tier: 'sec', is: { name: 'sec.web', tier: 'sec' } },
  { title: 'whose tier only its name has', name: 'sec.web', is: { name: 'sec.web', tier: 'sec' } },
  { title: 'that was made without a tier', name: 'default.web', inner: { name: 'web' }, is: { name: 'web', tier: undefined } },
  { title: 'that was made with one', name: 'default.web', inner: { name: 'default.web' }, is: { name: 'default.web', tier: undefined } },
  {
    title: 'of another tier that was made without',
    name: 'sec.web',
    inner: { name: 'web' },
    tier: 'sec',
    is: { name: 'web', tier: 'sec' },
  },
  { title: 'that was written by hand', name: 'web', is: { name: 'web', tier: undefined } },
])('the name of a policy $title is as it was shown', ({ name, inner, tier, is }) => {
  const annotations = inner === undefined ? {} : { [ANNOTATION]: JSON.stringify(inner) }
  const object = objectOf('GlobalNetworkPolicy', { name, annotations }, tier === undefined ? {} : { tier }) as {
    readonly metadata: { readonly name: string }
    readonly spec: { readonly tier?: string }
  }
  expect({ name: object.metadata.name, tier: object.spec.tier }).toEqual(is)
})

test('words are taken in any case', () => {
  const spec = { types: ['ingress'], ingress: [{ action: 'ALLOW', source: { selector: 'a == "allow"' } }] }
  expect(objectOf('NetworkPolicy', { name: 'default.p', namespace: 'shop' }, spec)).toMatchObject({
    metadata: { name: 'p', namespace: 'shop' },
    spec: { types: ['Ingress'], ingress: [{ action: 'Allow', source: { selector: 'a == "allow"' } }] },
  })
  expect(
    objectOf('FelixConfiguration', { name: 'default' }, { defaultEndpointToHostAction: 'ACCEPT', logSeverityScreen: 'info' }),
  ).toMatchObject({
    spec: { defaultEndpointToHostAction: 'Accept', logSeverityScreen: 'Info' },
  })
})

test('a pool may have fields of the v1 API', () => {
  expect(
    objectOf('IPPool', { name: 'p' }, { cidr: '10.1.0.0/16', natOutgoing: false, 'nat-outgoing': true, ipip: { enabled: false } }),
  ).toMatchObject({
    spec: { cidr: '10.1.0.0/16', natOutgoing: true, ipipMode: 'Never' },
  })
  // the newer field counts
  expect(objectOf('IPPool', { name: 'p' }, { cidr: '10.1.0.0/16', ipipMode: 'Never', ipip: { enabled: true } })).toMatchObject({
    spec: { ipipMode: 'Never' },
  })
})

test('settings of the controllers have another name', () => {
  expect(
    objectOf('KubeControllersConfiguration', { name: 'default' }, { controllers: { node: { reconcilerPeriod: '5m' } } }),
  ).toMatchObject({
    kind: 'ControllersConfiguration',
  })
})

test.each<readonly [text: string, path: string, reason: string]>([
  ['kind: BGPPeer', 'kind', 'BGP is not supported'],
  ['kind: IPAMBlock', 'kind', 'known to their cluster alone'],
  ['kind: IPReservation, metadata: {name: r}', 'kind', 'there is no such kind'],
  ['kind: NetworkPolicy, metadata: {name: knp.default.web}', 'metadata.name', 'made of a policy of Kubernetes'],
  ['kind: Tier, metadata: {name: t, ownerReferences: [{}]}', 'metadata.ownerReferences', ''],
  [`kind: Tier, metadata: {name: t, annotations: {${ANNOTATION}: '['}}`, `metadata.annotations['${ANNOTATION}']`, 'is not JSON'],
  [
    `kind: Tier, metadata: {name: t, annotations: {${ANNOTATION}: '{"finalizers": ["x"]}'}}`,
    `metadata.annotations['${ANNOTATION}'].metadata.finalizers`,
    '',
  ],
])('{%s} is refused at %s: %s', (text, path, reason) => {
  const { rejected } = convertObject(load(`{apiVersion: crd.netplane.io/v1, ${text}}`), OPTIONS)
  expect(rejected).toMatchObject([{ path, reason: expect.stringContaining(reason) as string }])
})
