// SPDX-License-Identifier: Apache-2.0
/** NetworkPolicies of Kubernetes as ours. Layer: test. */
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { convertObject } from '../../../cli/convert/command.ts'
import { readArgs } from '../../../cli/args.ts'

const OPTIONS = { namespace: 'default', namesOnly: false }

function policy(spec: string): unknown {
  return load(
    `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: db, namespace: shop, labels: {a: b}, uid: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: z}}, spec: ${spec}}`,
  )
}

function specOf(spec: string): unknown {
  const { object, rejected } = convertObject(policy(spec), OPTIONS)
  expect(rejected).toEqual([])
  expect(object).toMatchObject({ apiVersion: 'netplane.io/v3', kind: 'NetworkPolicy' })
  expect(object?.metadata).toEqual({ name: 'db', namespace: 'shop', labels: { a: 'b' } })
  return object?.['spec']
}

const PODS = 'netplane.io/orchestrator == "k8s"'

describe('a policy', () => {
  test('that selects all pods and allows nothing', () => {
    expect(specOf('{podSelector: {}}')).toEqual({ order: 1000, selector: 'all()', types: ['Ingress'] })
    expect(specOf('{podSelector: {}, policyTypes: [Egress]}')).toMatchObject({ types: ['Egress'] })
  })

  test('has both types where it has egress rules', () => {
    expect(specOf('{podSelector: {}, egress: [{}]}')).toEqual({
      order: 1000,
      selector: 'all()',
      types: ['Ingress', 'Egress'],
      egress: [{ action: 'Allow' }],
    })
  })

  test('has the selector that its labels and expressions say', () => {
    const spec = `{podSelector: {matchLabels: {role: db, app.kubernetes.io/name: x}, matchExpressions: [
      {key: a, operator: In, values: [b, c]}, {key: d, operator: NotIn, values: [e]}, {key: f, operator: Exists}, {key: g, operator: DoesNotExist}]}}`
    const selector = '(app.kubernetes.io/name == "x" && role == "db" && a in {"b", "c"} && d not in {"e"} && has(f) && !has(g))'
    expect(specOf(spec)).toMatchObject({ selector })
  })

  test('has a rule for each peer and protocol', () => {
    const spec = `{podSelector: {}, ingress: [{
      from: [{podSelector: {matchLabels: {a: b}}}, {namespaceSelector: {}}, {namespaceSelector: {matchLabels: {team: a}}, podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}],
      ports: [{port: 80}, {port: web, protocol: TCP}, {port: 1000, endPort: 2000, protocol: UDP}]}]}`
    const peers = [
      { selector: `(${PODS} && a == "b")` },
      { selector: PODS, namespaceSelector: 'all()' },
      { selector: PODS, namespaceSelector: 'team == "a"' },
      { nets: ['10.0.0.0/8'], notNets: ['10.1.0.0/16'] },
    ]
    expect(specOf(spec)).toMatchObject({
      ingress: peers.flatMap((source) => [
        { action: 'Allow', protocol: 'TCP', source, destination: { ports: [80, 'web'] } },
        { action: 'Allow', protocol: 'UDP', source, destination: { ports: ['1000:2000'] } },
      ]),
    })
  })

  test('means all ports of a protocol by an entry without a port', () => {
    expect(specOf('{podSelector: {}, egress: [{ports: [{port: 53, protocol: UDP}, {protocol: UDP}]}]}')).toMatchObject({
      egress: [{ action: 'Allow', protocol: 'UDP' }],
    })
  })
})

test.each([
  ['{podSelector: {}, tier: x}', 'spec.tier', 'is not a field that is understood here'],
  [
    '{podSelector: {}, ingress: [{from: [{podSelector: {}, fqdn: x}]}]}',
    'spec.ingress[0].from[0].fqdn',
    'is not a field that is understood here',
  ],
  ['{podSelector: {}, ingress: [{to: []}]}', 'spec.ingress[0].to', 'is not a field that is understood here'],
  ['{podSelector: {}, ingress: [{from: [{}]}]}', 'spec.ingress[0].from[0]', 'must have a podSelector'],
  ['{podSelector: {}, egress: [{ports: [{port: web, endPort: 9}]}]}', 'spec.egress[0].ports[0].endPort', 'needs a port'],
  ['{podSelector: {matchExpressions: [{key: a, operator: Gt}]}}', 'spec.podSelector.matchExpressions[0].operator', 'must be In'],
])('%s is refused at %s', (spec, path, reason) => {
  const { object, rejected } = convertObject(policy(spec), OPTIONS)
  expect(object).toBeUndefined()
  expect(rejected).toEqual([{ ref: 'NetworkPolicy/shop/db', path, reason: expect.stringContaining(reason) as string }])
})

test('owners are not lost without a word', () => {
  const raw = { ...(policy('{podSelector: {}}') as object), metadata: { name: 'db', ownerReferences: [{}] } }
  expect(convertObject(raw, OPTIONS).rejected).toMatchObject([{ path: 'metadata.ownerReferences' }])
})

test('other kinds are ours, or refused', () => {
  expect(convertObject({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'x' } }, OPTIONS).rejected).toMatchObject([
    { path: 'kind' },
  ])
})

test('a table is no form of it', () => {
  expect(() => readArgs(['convert', '-f', 'x', '-o', 'wide'])).toThrow('--output: must be yaml or json')
  expect(readArgs(['convert', '-f', 'x'])).toMatchObject({ kind: 'convert', format: 'yaml', ignoreValidation: false })
})
