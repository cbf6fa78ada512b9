// SPDX-License-Identifier: Apache-2.0
/** NetworkPolicy of networking.k8s.io. Layer: test. */
import { describe, expect, test } from 'vitest'
import { kubernetesPolicy } from '../../../../support/build.ts'
import type { Manifest } from '../../../../support/build.ts'
import { read } from './policies.ts'

const SHOP = '(netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop"'
const line = (spec: Manifest): readonly string[] => read(kubernetesPolicy('shop/p', spec)).policy

describe('a policy', () => {
  test('without rules closes what comes in', () => {
    expect(line({})).toEqual([`default 1000, ${SHOP})`, 'ingress: none'])
  })

  test('is of the directions it names, or of those it has rules for', () => {
    expect(line({ policyTypes: ['Egress'] }).slice(1)).toEqual(['egress: none'])
    expect(line({ egress: [{}] }).slice(1)).toEqual(['ingress: none', 'egress 0: allow'])
    expect(line({ egress: [] }).slice(1)).toEqual(['ingress: none'])
    expect(line({ policyTypes: ['Ingress'], egress: [{}] }).slice(1)).toEqual(['ingress: none'])
  })

  test('selects by labels and expressions', () => {
    const matchExpressions = [
      { key: 'tier', operator: 'In', values: ['b', 'a', 'b'] },
      { key: 'tier', operator: 'NotIn', values: ['c'] },
      { key: 'example.org/live', operator: 'Exists' },
      { key: 'old', operator: 'DoesNotExist', values: [] },
    ]
    expect(line({ podSelector: { matchLabels: { app: 'web' }, matchExpressions } })[0]).toBe(
      `default 1000, ${SHOP} && app == "web" && tier in {"a", "b"} && tier not in {"c"} && has(example.org/live) && !has(old))`,
    )
  })

  test('has a rule for each peer and each protocol', () => {
    const from = [
      { podSelector: { matchLabels: { app: 'web' } } },
      { namespaceSelector: {} },
      { namespaceSelector: { matchLabels: { team: 'x' } }, podSelector: {} },
      { ipBlock: { cidr: '10.0.0.7/8', except: ['10.1.0.0/16'] } },
    ]
    const ports = [{ port: 80 }, { protocol: 'UDP' }, { port: 8000, endPort: 8010 }, { port: 'web' }, { protocol: 'UDP', port: 53 }]
    const peers = [
      `from ${SHOP} && app == "web")`,
      'from netplane.io/orchestrator == "k8s"',
      'from (netplane.io/orchestrator == "k8s" && pcns.team == "x")',
      'from nets 10.0.0.0/8 not nets 10.1.0.0/16',
    ]
    expect(line({ ingress: [{}, { from, ports }] }).slice(1)).toEqual([
      'ingress 0: allow',
      ...peers.flatMap((peer) => [`ingress 1: allow tcp ${peer} to ports 80 8000-8010 "web"`, `ingress 1: allow udp ${peer}`]),
    ])
  })
})

describe('a bad one is closed, and says why', () => {
  const rule = (of: Manifest): Manifest => ({ ingress: [of] })
  test.each<[Manifest, string]>([
    [rule({ from: [{}] }), 'spec.ingress[0].from[0]: must have a podSelector, a namespaceSelector or an ipBlock'],
    [rule({ from: [{ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }] }), 'spec.ingress[0].from[0].ipBlock: must stand alone'],
    [rule({ from: [{ ipBlock: { except: [] } }] }), 'spec.ingress[0].from[0].ipBlock.cidr: is missing'],
    [
      rule({ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } }] }),
      'spec.ingress[0].from[0].ipBlock.except: must be inside cidr',
    ],
    [rule({ form: [{ podSelector: {} }] }), 'spec.ingress[0].form: is not a field that is understood here'],
    [
      rule({ from: [{ podSelector: { matchLabel: { a: 'b' } } }] }),
      'spec.ingress[0].from[0].podSelector.matchLabel: is not a field that is understood here',
    ],
    [rule({ ports: [{ port: 0 }] }), 'spec.ingress[0].ports[0].port: must be 1..65535'],
    [rule({ ports: [{ port: 'Web' }] }), 'spec.ingress[0].ports[0].port: must be 1..65535 or the name of a port'],
    [rule({ ports: [{ port: 'web', endPort: 90 }] }), 'spec.ingress[0].ports[0].endPort: needs a port that is a number'],
    [rule({ ports: [{ port: 90, endPort: 80 }] }), 'spec.ingress[0].ports[0].endPort: must not be below port'],
    [rule({ ports: [{ protocol: 'ICMP' }] }), 'spec.ingress[0].ports[0].protocol: must be TCP or UDP or SCTP'],
  ])('%j', (spec, reason) => {
    expect(read(kubernetesPolicy('shop/p', spec))).toEqual({
      policy: [`default 1000, closed, ${SHOP})`, 'ingress: none'],
      refused: [reason],
    })
  })

  test('in the directions it may mean', () => {
    const both = ['ingress: none', 'egress: none']
    expect(read(kubernetesPolicy('shop/p', { egress: [{ to: 7 }] })).policy.slice(1)).toEqual(both)
    expect(read(kubernetesPolicy('shop/p', { policyTypes: ['ingress'] }))).toEqual({
      policy: [`default Infinity, closed, ${SHOP})`, ...both],
      refused: ['spec.policyTypes[0]: must be Ingress or Egress'],
    })
  })
})

describe('a policy whose selector cannot be read closes nothing', () => {
  test.each<[Manifest, string]>([
    [{ podSelector: { matchLabels: { 'no/such/key': 'x' } } }, "spec.podSelector.matchLabels.['no/such/key']: must be the key of a label"],
    [{ podSelector: { matchLabels: { a: 1 } } }, "spec.podSelector.matchLabels['a']: must be text"],
    [
      { podSelector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } },
      'spec.podSelector.matchExpressions[0].operator: must be In or NotIn or Exists or DoesNotExist',
    ],
    [
      { podSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
      'spec.podSelector.matchExpressions[0].values: must be said with In and NotIn, and with nothing else',
    ],
    [
      { podSelector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] } },
      'spec.podSelector.matchExpressions[0].values: must be said with In and NotIn, and with nothing else',
    ],
    [{ podSelector: {}, stagedAction: 'Delete' }, 'spec.stagedAction: is not a field that is understood here'],
  ])('%j', (spec, reason) => {
    expect(read(kubernetesPolicy('shop/p', spec))).toEqual({ policy: [], refused: [reason.replace("matchLabels.['", "matchLabels['")] })
  })
})
