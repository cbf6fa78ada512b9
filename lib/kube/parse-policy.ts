// SPDX-License-Identifier: Apache-2.0
/** Raw policies of netplane.io/v3, staged ones as well → model. Layer: lib/kube. */
import type { Policy, PolicyKind, Scope } from '../model/policy.ts'
import { NONE_AT_ALL } from '../model/selector.ts'
import { each, FieldError, flag, inside, number, oneOf, only, text } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { isSaid, policyOf } from './policy-parts.ts'
import type { Direction } from './policy-parts.ts'
import { kubernetesPolicy } from './parse-network-policy.ts'
import { v3Rules } from './v3-rule.ts'
import { subjectAt } from './v3-selectors.ts'

const COMMON = ['tier', 'order', 'selector', 'serviceAccountSelector', 'types', 'ingress', 'egress', 'performanceHints']
const GLOBAL = [...COMMON, 'namespaceSelector', 'doNotTrack', 'preDNAT', 'applyOnForward']

export function parseV3Policy(input: ParseInput): Policy {
  return v3Policy(input, { kind: 'NetworkPolicy', fields: COMMON })
}

export function parseGlobalPolicy(input: ParseInput): Policy {
  return v3Policy(input, { kind: 'GlobalNetworkPolicy', fields: GLOBAL })
}

export function parseStagedV3Policy(input: ParseInput): Policy {
  return v3Policy(input, { kind: 'StagedNetworkPolicy', fields: [...COMMON, 'stagedAction'] })
}

export function parseStagedGlobalPolicy(input: ParseInput): Policy {
  return v3Policy(input, { kind: 'StagedGlobalNetworkPolicy', fields: [...GLOBAL, 'stagedAction'] })
}

export function parseStagedKubernetesPolicy(input: ParseInput): Policy {
  const kind = 'StagedKubernetesNetworkPolicy'
  return inside(input.raw, 'spec', (spec) => {
    const staged = stagedAction(spec)
    return staged === 'Delete' ? removal(input, { kind, tier: 'default' }) : kubernetesPolicy(input, spec, { kind, staged })
  })
}

function v3Policy(input: ParseInput, of: { readonly kind: PolicyKind; readonly fields: readonly string[] }): Policy {
  const { namespace, name, refuse } = input
  return inside(input.raw, 'spec', (spec) => {
    // a field of another name may be a misspelt selector: without it the policy would close everything
    only(spec, of.fields)
    const staged = of.fields.includes('stagedAction') ? stagedAction(spec) : undefined
    if (staged === 'Delete') return removal(input, { kind: of.kind, tier: tierOf(spec) })
    // where something else of it is bad it is closed in its own tier
    const tier = typeof spec['tier'] === 'string' ? tierOf(spec) : 'default'
    const known = { kind: of.kind, namespace, name, tier, subject: subjectAt(spec, namespace), staged }
    const scope = (): Scope => (of.kind.endsWith('GlobalNetworkPolicy') ? scopeOf(spec) : 'normal')
    return policyOf(input, known, {
      frame: () => {
        const order = number(spec, 'order') ?? Number.POSITIVE_INFINITY
        return { tier: tierOf(spec), order, scope: scope(), directions: directionsOf(spec) }
      },
      rules: (direction) => {
        if (direction === 'egress' && scope() === 'preDNAT') throw new FieldError('egress', 'must not be said with preDNAT')
        return v3Rules(spec, { direction, namespace, refuse })
      },
    })
  })
}

function tierOf(spec: Raw): string {
  const tier = text(spec, 'tier') ?? ''
  return tier === '' ? 'default' : tier
}

/** Of a staged policy nothing is in force, so one that cannot be read is refused as a whole. */
function stagedAction(spec: Raw): Policy['staged'] {
  const action = oneOf(spec, 'stagedAction', { words: ['Set', 'Delete', 'Learn', 'Ignore'], absent: 'Set' })
  return action === 'Learn' ? 'Ignore' : action
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

/** Where nothing is said: those that it has rules for, ingress if it has none at all. */
function directionsOf(spec: Raw): readonly Direction[] {
  const types = each(spec, 'types', (value): Direction => {
    if (value === 'Ingress') return 'ingress'
    if (value === 'Egress') return 'egress'
    throw new FieldError('', 'must be Ingress or Egress')
  })
  if (types.length > 0) return [...new Set(types)]
  if (!isSaid(spec, 'egress')) return ['ingress']
  return isSaid(spec, 'ingress') ? ['ingress', 'egress'] : ['egress']
}

/** Untracked policies, and those from before services are translated, are of what passes through as well. */
function scopeOf(spec: Raw): Scope {
  const [untracked, early, forward] = [flag(spec, 'doNotTrack') ?? false, flag(spec, 'preDNAT') ?? false, flag(spec, 'applyOnForward')]
  if (untracked && early) throw new FieldError('preDNAT', 'must not be said with doNotTrack')
  if ((untracked || early) && forward === false)
    throw new FieldError('applyOnForward', `must be true with ${early ? 'preDNAT' : 'doNotTrack'}`)
  if (untracked) return 'doNotTrack'
  if (early) return 'preDNAT'
  return forward === true ? 'forward' : 'normal'
}
