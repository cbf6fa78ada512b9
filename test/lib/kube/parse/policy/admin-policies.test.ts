// SPDX-License-Identifier: Apache-2.0
/** Policies of policy.networking.k8s.io, both versions. Layer: test. */
import { describe, expect, test } from 'vitest'
import { clusterPolicy } from '../../../../support/build.ts'
import type { Manifest } from '../../../../support/build.ts'
import { read } from './policies.ts'

const PODS = 'netplane.io/orchestrator == "k8s" && has(netplane.io/namespace)'
const HEAD = `adminnetworkpolicy 10, (${PODS})`
const cluster = (spec: Manifest) => read(clusterPolicy('p', spec))
const everybody = [{ namespaces: {} }]
const admin = (kind: string, name: string, spec: Manifest) =>
  read({ apiVersion: 'policy.networking.k8s.io/v1alpha1', kind, metadata: { name }, spec: { subject: { namespaces: {} }, ...spec } })

describe('ClusterNetworkPolicy', () => {
  test('is of pods, by namespace or by both, and only of directions that it has rules for', () => {
    expect(cluster({}).policy).toEqual([HEAD])
    const pods = { namespaceSelector: { matchLabels: { team: 'x' } }, podSelector: { matchLabels: { app: 'web' } } }
    expect(cluster({ tier: 'Baseline', priority: 0, subject: { pods } }).policy).toEqual([
      `baselineadminnetworkpolicy 0, (${PODS} && pcns.team == "x" && app == "web")`,
    ])
  })

  test('has a rule for each peer and each protocol', () => {
    const protocols = [
      { tcp: { destinationPort: { number: 80 } } },
      { udp: { destinationPort: { range: { start: 50, end: 60 } } } },
      { sctp: {} },
      { destinationNamedPort: 'web' },
    ]
    const egress = [
      { name: 'some', action: 'Accept', to: everybody, protocols },
      { action: 'Deny', to: [{ nodes: {} }, { networks: ['10.0.0.0/8', 'fd00::/8'] }] },
    ]
    const ingress = [{ action: 'Pass', from: [{ namespaces: { matchLabels: { team: 'x' } } }] }]
    expect(cluster({ ingress, egress }).policy).toEqual([
      HEAD,
      `ingress 0: pass from (${PODS} && pcns.team == "x")`,
      `egress 0 some: allow tcp to (${PODS}) ports 80`,
      `egress 0 some: allow udp to (${PODS}) ports 50-60`,
      `egress 0 some: allow sctp to (${PODS})`,
      `egress 0 some: allow to (${PODS}) ports "web"`,
      'egress 1: deny to nodes all()',
      'egress 1: deny to nets 10.0.0.0/8 fd00::/8',
    ])
  })

  test('with peers of an unknown kind allows none of them, and denies or passes nothing by mistake', () => {
    const egress = ['Accept', 'Deny', 'Pass'].map((action) => ({ action, to: [...everybody, { domainNames: ['example.org'] }] }))
    expect(cluster({ egress: [...egress, { action: 'Accept', to: [{}] }] })).toEqual({
      policy: [HEAD, 'egress 1: deny', 'egress 2: deny'],
      refused: [
        'spec.egress[0].to[1]: domainNames is not supported: the rule allows nothing',
        'spec.egress[1].to[1]: domainNames is not supported: the rule denies everything',
        'spec.egress[2].to[1]: domainNames is not supported: the rule denies everything',
        'spec.egress[3].to[0]: says nothing that is understood: the rule allows nothing',
      ],
    })
  })

  const egress = (of: Manifest): Manifest => ({ egress: [{ action: 'Deny', to: everybody, ...of }] })
  test.each<[Manifest, string]>([
    [egress({ action: 'Allow' }), 'egress[0].action: must be Accept or Deny or Pass'],
    [egress({ to: [] }), 'egress[0].to: must have at least one'],
    [egress({ to: [{ namespaces: {}, nodes: {} }] }), 'egress[0].to[0]: must have one field'],
    [egress({ to: [{ networks: ['10.0.0.1'] }] }), 'egress[0].to[0].networks[0]: must be an IP prefix, like 10.0.0.0/24'],
    [egress({ protocols: [{}] }), 'egress[0].protocols[0]: must have one of tcp, udp, sctp and destinationNamedPort'],
    [egress({ protocols: [{ tcp: {}, udp: {} }] }), 'egress[0].protocols[0]: must have one of tcp, udp, sctp and destinationNamedPort'],
    [
      egress({ protocols: [{ tcp: { destinationPort: {} } }] }),
      'egress[0].protocols[0].tcp.destinationPort: must have a number or a range',
    ],
    [
      egress({ protocols: [{ tcp: { destinationPort: { range: { start: 9, end: 8 } } } }] }),
      'egress[0].protocols[0].tcp.destinationPort.range.end: must not be below start',
    ],
    [
      egress({ to: [{ nodes: {} }], protocols: [{ destinationNamedPort: 'web' }] }),
      'egress[0].protocols: must not name a port: nodes and networks have no named ones',
    ],
    [egress({ ports: [] }), 'egress[0].ports: is not a field that is understood here'],
  ])('%j is closed', (spec, reason) => {
    expect(cluster(spec)).toEqual({ policy: [`adminnetworkpolicy 10, closed, (${PODS})`, 'egress: none'], refused: [`spec.${reason}`] })
  })

  test('is closed both ways where its tier or priority cannot be read', () => {
    const closed = [`adminnetworkpolicy Infinity, closed, (${PODS})`, 'ingress: none', 'egress: none']
    expect(cluster({ priority: 1001 })).toEqual({ policy: closed, refused: ['spec.priority: must be 0..1000'] })
    expect(cluster({ priority: null })).toEqual({ policy: closed, refused: ['spec.priority: is missing'] })
    expect(cluster({ tier: 'Middle' })).toEqual({ policy: closed, refused: ['spec.tier: must be Admin or Baseline'] })
    const last = cluster({ tier: 'Baseline', priority: 1001 }).policy[0]
    expect(last, 'no policy of another tier loses its say').toBe(`baselineadminnetworkpolicy Infinity, closed, (${PODS})`)
  })

  test.each<[Manifest, string]>([
    [{ subject: {} }, 'spec.subject: must have namespaces or pods'],
    [{ subject: { namespaces: {}, pods: {} } }, 'spec.subject.pods: must not stand beside namespaces'],
    [{ subject: { nodes: {} } }, 'spec.subject.nodes: is not a field that is understood here'],
  ])('without a subject (%j) closes nothing', (spec, reason) => {
    expect(cluster(spec)).toEqual({ policy: [], refused: [reason] })
  })
})

describe('the version before', () => {
  test('says the same in other words', () => {
    const ports = [{ portNumber: { protocol: 'UDP', port: 53 } }, { portRange: { start: 8000, end: 8010 } }, { namedPort: 'web' }]
    const spec = {
      priority: 7,
      ingress: [{ action: 'Allow', from: everybody, ports }],
      egress: [{ action: 'Pass', to: everybody, ports: null }],
    }
    expect(admin('AdminNetworkPolicy', 'p', spec).policy).toEqual([
      `adminnetworkpolicy 7, (${PODS})`,
      `ingress 0: allow udp from (${PODS}) to ports 53`,
      `ingress 0: allow tcp from (${PODS}) to ports 8000-8010`,
      `ingress 0: allow from (${PODS}) to ports "web"`,
      `egress 0: pass to (${PODS})`,
    ])
  })

  test('has one baseline, which does not pass', () => {
    expect(admin('BaselineAdminNetworkPolicy', 'default', {}).policy).toEqual([`baselineadminnetworkpolicy Infinity, (${PODS})`])
    expect(admin('BaselineAdminNetworkPolicy', 'other', {}).refused).toEqual(['metadata.name: must be default'])
    expect(admin('BaselineAdminNetworkPolicy', 'default', { ingress: [{ action: 'Pass', from: everybody }] }).refused).toEqual([
      'spec.ingress[0].action: must be Allow or Deny',
    ])
    expect(admin('BaselineAdminNetworkPolicy', 'default', { priority: 1 }).refused).toEqual([
      'spec.priority: is not a field that is understood here',
    ])
  })
})
