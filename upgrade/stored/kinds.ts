// SPDX-License-Identifier: Apache-2.0
/** Every kind that versions before this one store, and how it is read. Layer: upgrade (pure). */
import type { Schema } from '#lib/base/schema.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { resources } from '#lib/kube/resources.ts'
import type { Rule } from './edit.ts'
import { canonical } from './rules/canonical.ts'
import { controllersLeftOut, unknownLeftOut } from './rules/configuration.ts'
import { fromEnvironment, oldDefaults, renamedFields, unusedFields } from './rules/felix.ts'
import { tierRule, typesRule } from './rules/policy.ts'
import { noIpip, oldPoolFields, poolDefaults } from './rules/pool.ts'
import { oldSelectors } from './rules/selectors.ts'

/** In which order objects are to be made. */
export const STAGES = ['tiers', 'configuration', 'pools', 'sets', 'policies', 'endpoints', 'addresses'] as const
export type Stage = (typeof STAGES)[number]

/** What the rules of a kind go by. */
export interface RuleInput {
  readonly name: string
  /** of a policy */
  readonly tier: string
  /** of the agents before this version */
  readonly environment: Readonly<Record<string, string>>
}

export type Reading =
  | { readonly how: 'carried'; readonly rules: (input: RuleInput) => readonly Rule[] }
  /** an administrator has to do without it first */
  | { readonly how: 'refused'; readonly reason: string }
  | { readonly how: 'left'; readonly reason: string }
  /** with the pods that have the addresses: see `ipam/` */
  | { readonly how: 'addresses' }

export interface StoredKind {
  readonly kind: string
  /** of the stored resource */
  readonly plural: string
  readonly since: string
  readonly stage: Stage
  readonly reading: Reading
}

const NO_BGP = "BGP is not supported: nodes reach each other's pods by VXLAN, or as the network routes"

const SPECS: ReadonlyMap<string, Schema> = new Map(resources(felixSchema()).map(({ kind, spec }) => [kind, spec]))

/** Of an object of this version. */
export function specOf(kind: string): Schema {
  return SPECS.get(kind) ?? {}
}

function carried(kind: string, plural: string, of: Pick<StoredKind, 'since' | 'stage'> & { readonly rules?: readonly Rule[] }): StoredKind {
  const { since, stage, rules = [] } = of
  return { kind, plural, since, stage, reading: { how: 'carried', rules: () => [canonical(specOf(kind)), ...rules] } }
}

function policy(kind: string, plural: string, since: string): StoredKind {
  const rules = ({ tier }: RuleInput) => [canonical(specOf(kind)), tierRule(tier), typesRule, oldSelectors]
  return { kind, plural, since, stage: 'policies', reading: { how: 'carried', rules } }
}

function other(kind: string, plural: string, of: Omit<StoredKind, 'kind' | 'plural'>): StoredKind {
  return { kind, plural, ...of }
}

const FELIX: Reading = {
  how: 'carried',
  rules: ({ name, environment }) => [
    ...(name === 'default' ? [fromEnvironment(environment)] : []),
    renamedFields,
    canonical(specOf('FelixConfiguration')),
    unusedFields,
    ...(name === 'default' ? [oldDefaults] : []),
  ],
}

export const STORED_KINDS: readonly StoredKind[] = [
  carried('Tier', 'tiers', { since: '3.29', stage: 'tiers' }),
  other('FelixConfiguration', 'felixconfigurations', { since: '3.15', stage: 'configuration', reading: FELIX }),
  carried('ClusterInformation', 'clusterinformations', {
    since: '3.15',
    stage: 'configuration',
    rules: [unknownLeftOut(specOf('ClusterInformation'))],
  }),
  carried('ControllersConfiguration', 'controllersconfigurations', {
    since: '3.15',
    stage: 'configuration',
    rules: [controllersLeftOut, unknownLeftOut(specOf('ControllersConfiguration')), oldSelectors],
  }),
  other('BGPConfiguration', 'bgpconfigurations', { since: '3.15', stage: 'configuration', reading: { how: 'refused', reason: NO_BGP } }),
  other('BGPPeer', 'bgppeers', { since: '3.15', stage: 'configuration', reading: { how: 'refused', reason: NO_BGP } }),
  other('BGPFilter', 'bgpfilters', { since: '3.26', stage: 'configuration', reading: { how: 'refused', reason: NO_BGP } }),
  other('NetplaneNodeStatus', 'netplanenodestatuses', {
    since: '3.21',
    stage: 'configuration',
    reading: { how: 'left', reason: 'it tells of BGP, which is not supported' },
  }),
  carried('IPPool', 'ippools', { since: '3.15', stage: 'pools', rules: [oldPoolFields, poolDefaults, noIpip] }),
  other('IPReservation', 'ipreservations', {
    since: '3.21',
    stage: 'pools',
    reading: { how: 'refused', reason: 'addresses cannot be reserved: cut them out of the pools first' },
  }),
  carried('NetworkSet', 'networksets', { since: '3.15', stage: 'sets' }),
  carried('GlobalNetworkSet', 'globalnetworksets', { since: '3.15', stage: 'sets' }),
  policy('NetworkPolicy', 'networkpolicies', '3.15'),
  policy('GlobalNetworkPolicy', 'globalnetworkpolicies', '3.15'),
  policy('StagedNetworkPolicy', 'stagednetworkpolicies', '3.30'),
  policy('StagedGlobalNetworkPolicy', 'stagedglobalnetworkpolicies', '3.30'),
  carried('StagedKubernetesNetworkPolicy', 'stagedkubernetesnetworkpolicies', { since: '3.30', stage: 'policies' }),
  carried('HostEndpoint', 'hostendpoints', { since: '3.15', stage: 'endpoints' }),
  other('IPAMBlock', 'ipamblocks', { since: '3.15', stage: 'addresses', reading: { how: 'addresses' } }),
  other('BlockAffinity', 'blockaffinities', { since: '3.15', stage: 'addresses', reading: { how: 'addresses' } }),
  other('IPAMHandle', 'ipamhandles', { since: '3.15', stage: 'addresses', reading: { how: 'addresses' } }),
  other('IPAMConfig', 'ipamconfigs', { since: '3.15', stage: 'addresses', reading: { how: 'addresses' } }),
]
