// SPDX-License-Identifier: Apache-2.0
/** Shapes of the specs of netplane.io/v3 policies. Layer: lib/kube. */
import { kubernetesPolicySpec } from './network-policy.ts'
import { field, fieldOr, listed, object } from './shape.ts'
import type { Rule } from './shape.ts'
import { flag, number, text, word } from './primitives.ts'
import { RULE_SHAPES, selector } from './v3-rules.ts'

const MOST_RULES = { most: 1024 }

function common(scope: keyof typeof RULE_SHAPES) {
  const { ingress, egress } = RULE_SHAPES[scope]
  return {
    tier: field('The tier that it belongs to; default when it is missing.', text),
    order: field('Its place in the tier, lowest first; last of all when it is missing.', number),
    selector: field('The endpoints that it applies to, by their labels; all when it is missing.', selector),
    serviceAccountSelector: field('The same by labels of their service account.', selector),
    types: listed('Its directions; those that it has rules for, or else Ingress, when it is missing.', word('Ingress', 'Egress'), {
      most: 2,
    }),
    ingress: listed('What may come in, rule by rule; the first that matches decides.', ingress, MOST_RULES),
    egress: listed('What may go out, rule by rule; the first that matches decides.', egress, MOST_RULES),
    performanceHints: listed('Accepted and not needed: nothing is computed ahead.', word('AssumeNeededOnEveryNode'), { most: 1 }),
  } as const
}

const HOST = {
  doNotTrack: fieldOr(false, 'Applies at host endpoints before anything else, and its flows are not tracked.', flag),
  preDNAT: fieldOr(false, 'Applies at host endpoints before services are translated; ingress only.', flag),
  applyOnForward: field('Applies at host endpoints to what passes through as well.', flag),
} as const

interface HostValues {
  readonly doNotTrack: boolean
  readonly preDNAT: boolean
  readonly applyOnForward: boolean | undefined
}

const isSet = (key: keyof HostValues): string => `(has(self.${key}) && self.${key})`

function needsForward(key: 'doNotTrack' | 'preDNAT'): Rule<HostValues> {
  return {
    path: 'applyOnForward',
    reason: `must be true with ${key}`,
    cel: `!${isSet(key)} || !has(self.applyOnForward) || self.applyOnForward`,
    holds: (said) => !said[key] || said.applyOnForward !== false,
  }
}

/** What policies of hosts may not say together. */
export const HOST_RULES: readonly Rule<HostValues>[] = [
  {
    path: 'preDNAT',
    reason: 'must not be said with doNotTrack',
    cel: `!${isSet('doNotTrack')} || !${isSet('preDNAT')}`,
    holds: ({ doNotTrack, preDNAT }) => !doNotTrack || !preDNAT,
  },
  needsForward('preDNAT'),
  needsForward('doNotTrack'),
]

const STAGED = {
  stagedAction: field(
    'What is staged: that the policy is there, or that it goes; Set when it is missing.',
    word('Set', 'Delete', 'Learn', 'Ignore'),
  ),
} as const

const namespaced = common('namespaced')
const global = {
  ...common('global'),
  namespaceSelector: field('The same by labels of their namespace.', selector),
  ...HOST,
} as const

const GLOBAL_RULES: readonly Rule<HostValues & { readonly egress: readonly unknown[]; readonly types: readonly string[] }>[] = [
  ...HOST_RULES,
  {
    path: 'egress',
    reason: 'must not be said with preDNAT',
    cel: `!${isSet('preDNAT')} || ((!has(self.types) || !('Egress' in self.types)) && (!has(self.egress) || size(self.egress) == 0))`,
    holds: ({ preDNAT, egress, types }) => !preDNAT || (!types.includes('Egress') && egress.length === 0),
  },
]

/** Kubernetes' own, which nothing can stage. */
export const KUBERNETES_POLICY_SPEC = object(kubernetesPolicySpec)

/** By kind. */
export const POLICY_SPECS = {
  NetworkPolicy: object(namespaced),
  GlobalNetworkPolicy: object(global, { rules: GLOBAL_RULES }),
  StagedNetworkPolicy: object({ ...namespaced, ...STAGED }),
  StagedGlobalNetworkPolicy: object({ ...global, ...STAGED }, { rules: GLOBAL_RULES }),
  StagedKubernetesNetworkPolicy: object({ ...kubernetesPolicySpec, ...STAGED }),
} as const

export type V3PolicyKind = Exclude<keyof typeof POLICY_SPECS, 'StagedKubernetesNetworkPolicy'>
