// SPDX-License-Identifier: Apache-2.0
/** Raw policies of netplane.io/v3, staged ones as well → model. Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { DIRECTIONS } from '../../../model/policy.ts'
import type { Direction, Policy, PolicyKind, Scope } from '../../../model/policy.ts'
import { NONE_AT_ALL } from '../../../model/selector/selector.ts'
import { FieldError, insideInSlices } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'
import { isSaid, policyOf } from './common.ts'
import { kubernetesPolicy } from './network-policy.ts'
import { HOST_RULES, POLICY_SPECS } from '../../schema/v3-policies.ts'
import type { V3PolicyKind } from '../../schema/v3-policies.ts'
import { v3Rules } from './v3-rule.ts'
import { subjectWith } from './v3-selectors.ts'

export function parseV3Policy(input: ParseInput): Sliced<Policy> {
  return v3Policy(input, 'NetworkPolicy')
}

export function parseGlobalPolicy(input: ParseInput): Sliced<Policy> {
  return v3Policy(input, 'GlobalNetworkPolicy')
}

export function parseStagedV3Policy(input: ParseInput): Sliced<Policy> {
  return v3Policy(input, 'StagedNetworkPolicy')
}

export function parseStagedGlobalPolicy(input: ParseInput): Sliced<Policy> {
  return v3Policy(input, 'StagedGlobalNetworkPolicy')
}

export function parseStagedKubernetesPolicy(input: ParseInput): Sliced<Policy> {
  const kind = 'StagedKubernetesNetworkPolicy'
  return insideInSlices(input.raw, 'spec', function* (spec) {
    const staged = stagedAction(POLICY_SPECS[kind].at(spec, 'stagedAction'))
    return staged === 'Delete' ? removal(input, { kind, tier: 'default' }) : yield* kubernetesPolicy(input, spec, { kind, staged })
  })
}

function v3Policy(input: ParseInput, kind: V3PolicyKind): Sliced<Policy> {
  const { namespace, name, refuse } = input
  return insideInSlices(input.raw, 'spec', function* (spec) {
    // a field of another name may be a misspelt selector: without it the policy would close everything
    POLICY_SPECS[kind].only(spec)
    // any kind's fields: those that this one has not are not there by now
    const said = POLICY_SPECS.StagedGlobalNetworkPolicy
    const tier = (): string => tierOf(said.at(spec, 'tier'))
    const staged = kind.startsWith('Staged') ? stagedAction(said.at(spec, 'stagedAction')) : undefined
    if (staged === 'Delete') return removal(input, { kind, tier: tier() })
    const subject = {
      selector: said.at(spec, 'selector'),
      namespaceSelector: said.at(spec, 'namespaceSelector'),
      serviceAccountSelector: said.at(spec, 'serviceAccountSelector'),
    }
    // where something else of it is bad it is closed in its own tier
    const closedTier = typeof spec['tier'] === 'string' ? tier() : 'default'
    const known = { kind, namespace, name, tier: closedTier, subject: subjectWith(subject, namespace), staged }
    const scope = (): Scope => scopeOf(spec)
    return yield* policyOf(input, known, {
      frame: () => {
        const order = said.at(spec, 'order') ?? Number.POSITIVE_INFINITY
        return { tier: tier(), order, scope: scope(), directions: directionsOf(spec) }
      },
      rules: (direction) => {
        if (direction === 'egress' && scope() === 'preDNAT') throw new FieldError('egress', 'must not be said with preDNAT')
        return v3Rules(spec, { direction, namespace, refuse })
      },
    })
  })
}

function tierOf(tier: string | undefined): string {
  return tier === undefined || tier === '' ? 'default' : tier
}

/** Of a staged policy nothing is in force, so one that cannot be read is refused as a whole. */
function stagedAction(action: 'Set' | 'Delete' | 'Learn' | 'Ignore' | undefined): Policy['staged'] {
  return action === 'Learn' ? 'Ignore' : (action ?? 'Set')
}

/** What is staged is that the real policy goes. */
function removal(input: ParseInput, of: { readonly kind: PolicyKind; readonly tier: string }): Policy {
  return {
    ...of,
    namespace: input.namespace,
    name: input.name,
    order: Number.POSITIVE_INFINITY,
    subject: NONE_AT_ALL,
    ingress: undefined,
    egress: undefined,
    staged: 'Delete',
    scope: 'normal',
  }
}

/** Without `types`: those that it has rules for, ingress if it has none at all. */
function directionsOf(spec: Raw): readonly Direction[] {
  const types = POLICY_SPECS.NetworkPolicy.at(spec, 'types').map((type): Direction => (type === 'Ingress' ? 'ingress' : 'egress'))
  if (types.length > 0) return [...new Set(types)]
  if (!isSaid(spec, 'egress')) return ['ingress']
  return isSaid(spec, 'ingress') ? DIRECTIONS : ['egress']
}

/** Untracked policies, and those from before services are translated, are of what passes through as well. */
function scopeOf(spec: Raw): Scope {
  const said = POLICY_SPECS.GlobalNetworkPolicy
  const host = {
    doNotTrack: said.at(spec, 'doNotTrack'),
    preDNAT: said.at(spec, 'preDNAT'),
    applyOnForward: said.at(spec, 'applyOnForward'),
  }
  for (const { path, reason, holds } of HOST_RULES) if (!holds(host)) throw new FieldError(path, reason)
  if (host.doNotTrack) return 'doNotTrack'
  if (host.preDNAT) return 'preDNAT'
  return host.applyOnForward === true ? 'forward' : 'normal'
}
