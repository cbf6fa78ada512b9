// SPDX-License-Identifier: Apache-2.0
/** Big worlds: a cluster with many policies, and one set with many rules. Layer: testkit. */
import { mix32 } from '#lib/base/hash.ts'
import { addrFromBytes, parseCidr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Side } from '#lib/model/policy.ts'
import { and, equals } from '#lib/model/selector/selector.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { PolicyEndpoint, PolicyUpdate } from '#agent/compile/policy/policy-update.ts'

/** Label combinations: 50 namespaces of ten applications. */
const COMBINATIONS = 500

const combinations: readonly Labels[] = Array.from({ length: COMBINATIONS }, (_, at) => {
  const [namespace, app, version] = [`ns${at % 50}`, `app${Math.floor(at / 50)}`, `v${mix32(at) % 5}`]
  return new Map([
    ['app', app],
    ['version', version],
    ['tier', at % 3 === 0 ? 'front' : 'back'],
    ['netplane.io/namespace', namespace],
    ['pcns.kubernetes.io/metadata.name', namespace],
    ['netplane.io/orchestrator', 'k8s'],
  ])
})

export function podAddr(at: number): Addr {
  return addrFromBytes(Uint8Array.of(10, 1 + (at >> 16), (at >> 8) & 255, at & 255))
}

/** Pod `at`, with the labels of one of the combinations. */
export function scalePod(at: number, local: boolean): PolicyUpdate {
  const labels = combinations[at % COMBINATIONS] ?? new Map<string, string>()
  const value: PolicyEndpoint = { kind: 'pod', labels, addrs: [podAddr(at)], ports: [], profiles: [`kns.ns${at % 50}`], local }
  return { kind: 'endpoint', key: `Pod/${at}`, value }
}

export function fromSide(selector: Side['selector']): Side {
  return { ...ANYWHERE, selector }
}

export function toPorts(from: number, to = from): Side {
  return { ...ANYWHERE, ports: [{ from, to }] }
}

/** As applications have them: for one application of one namespace, from two others, one of them elsewhere, on two
 * ports. */
export function scalePolicy(at: number): Policy {
  const namespace = `ns${at % 50}`
  const inNamespace = equals('netplane.io/namespace', namespace)
  const rules = [0, 1].map((rule) => {
    const peer = and(
      equals('netplane.io/namespace', rule === 0 ? namespace : `ns${mix32(at) % 50}`),
      equals('app', `app${mix32(2 * at + rule) % 10}`),
      ...(at % 4 === 0 ? [equals('tier', 'front')] : []),
    )
    const nets = rule === 1 && at % 10 === 0 ? { ...ANYWHERE, nets: [parseCidr(`203.0.${at % 250}.0/24`)] } : fromSide(peer)
    return ruleOf(rule, { protocols: [6], source: nets, destination: toPorts(8000 + (at % 50), 8000 + (at % 50) + rule) })
  })
  return {
    kind: 'KubernetesNetworkPolicy',
    namespace,
    name: `policy${at}`,
    tier: 'default',
    order: 1000,
    subject: and(inNamespace, equals('app', `app${mix32(at) % 10}`), ...(at % 3 === 0 ? [equals('version', `v${at % 5}`)] : [])),
    ingress: rules,
    egress:
      at % 2 === 0
        ? rules.map((rule) => ({ ...rule, source: ANYWHERE, destination: { ...rule.source, ports: rule.destination.ports } }))
        : undefined,
    staged: undefined,
    scope: 'normal',
  }
}

export function policyUpdate(policy: Policy): PolicyUpdate {
  return { kind: 'policy', key: `${policy.kind}/${policy.namespace === '' ? '' : `${policy.namespace}/`}${policy.name}`, value: policy }
}

/** One policy for all pods, whose rules each mean other peers, which overlap, on other ranges of ports, which
 * overlap. */
export function manyRules(count: number): Policy {
  const rules = Array.from({ length: count }, (_, at) => {
    const peer =
      at % 3 === 0
        ? equals('version', `v${at % 5}`)
        : and(equals('app', `app${at % 10}`), equals('netplane.io/namespace', `ns${(at >> 2) % 50}`))
    const from = (at * 7919) % 60_000
    return ruleOf(at, {
      protocols: [at % 2 === 0 ? 6 : 17],
      source: fromSide(peer),
      destination: toPorts(from, from + 1 + ((at * 104_729) % 5000)),
    })
  })
  return {
    kind: 'GlobalNetworkPolicy',
    namespace: '',
    name: 'many',
    tier: 'default',
    order: 1,
    subject: equals('netplane.io/orchestrator', 'k8s'),
    ingress: rules,
    egress: undefined,
    staged: undefined,
    scope: 'normal',
  }
}
