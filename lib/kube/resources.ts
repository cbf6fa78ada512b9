// SPDX-License-Identifier: Apache-2.0
/** Every kind of netplane.io/v3 as an API server knows it. Layer: lib/kube. */
import type { Condition, Schema } from '../base/schema.ts'
import { BUILT_IN_TIERS } from '../model/policy.ts'
import { ipBlockSpec } from './objects/ip-block.ts'
import { nodeNetworkSpec } from './objects/node-network.ts'
import { nodeNetworkStatusSchema } from './objects/node-network-status.ts'
import { clusterInformationSpec } from './schema/cluster-information.ts'
import { controllersConfigurationSpec } from './schema/controllers-configuration.ts'
import { hostEndpointSpec } from './parse/host-endpoint.ts'
import { ipPoolSpec } from './parse/ip-pool.ts'
import { networkSetSpec } from './parse/network-set.ts'
import { profileSpec } from './parse/profile.ts'
import { tierSpec } from './parse/tier.ts'
import { conditionPath, observedGeneration, statusSchema } from './schema/status.ts'
import { POLICY_SPECS } from './schema/v3-policies.ts'

export const GROUP = 'netplane.io'
export const VERSION = 'v3'

export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly path: string
  /** shown only where more is asked for */
  readonly wide?: true
}

export interface Resource {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly short: readonly string[]
  /** what people type besides; the API server does not know these */
  readonly aliases: readonly string[]
  readonly namespaced: boolean
  readonly doc: string
  readonly spec: Schema
  /** a part of its own, with rights of its own; undefined: there is none */
  readonly status?: Schema
  readonly columns: readonly Column[]
  /** of the whole object */
  readonly conditions: readonly Condition[]
  /** fields of spec that stay as they were made */
  readonly fixed: readonly string[]
}

type Described = Pick<Resource, 'kind' | 'plural' | 'doc' | 'spec'> & Partial<Resource>

export function resource(described: Described): Resource {
  return { group: GROUP, version: VERSION, short: [], aliases: [], namespaced: false, columns: [], conditions: [], fixed: [], ...described }
}

export function column(
  name: string,
  type: Column['type'] = 'string',
  path = `.spec.${name.charAt(0).toLowerCase()}${name.slice(1)}`,
): Column {
  return { name, type, path }
}

function wide(name: string, path: string, type: Column['type'] = 'string'): Column {
  return { name, type, path, wide: true }
}

const POLICY_COLUMNS: readonly Column[] = [column('Tier'), column('Order', 'number'), column('Selector')]
const STAGED_COLUMNS: readonly Column[] = [...POLICY_COLUMNS, column('Action', 'string', '.spec.stagedAction')]

/** The built-in tiers may be written down, but only as they are. */
const TIER_CONDITIONS: readonly Condition[] = [
  { rule: "!self.metadata.name.contains('.')", message: 'metadata.name must have no "."' },
  ...BUILT_IN_TIERS.flatMap(({ name, order, end }) => {
    const action = end === 'deny' ? 'Deny' : 'Pass'
    const isOther = `self.metadata.name != '${name}' || !has(self.spec)`
    return [
      {
        rule: `${isOther} || !has(self.spec.order) || self.spec.order == ${order}.0`,
        message: `spec.order of tier ${name} must be ${order}`,
      },
      {
        rule: `${isOther} || !has(self.spec.defaultAction) || self.spec.defaultAction == '${action}'`,
        message: `spec.defaultAction of tier ${name} must be ${action}`,
      },
    ]
  }),
]

const POLICIES: readonly Resource[] = [
  resource({
    kind: 'NetworkPolicy',
    plural: 'networkpolicies',
    aliases: ['policy', 'pol', 'np'],
    namespaced: true,
    doc: 'What may reach the pods of one namespace, and what they may reach.',
    spec: POLICY_SPECS.NetworkPolicy.schema,
    columns: POLICY_COLUMNS,
  }),
  resource({
    kind: 'GlobalNetworkPolicy',
    plural: 'globalnetworkpolicies',
    short: ['gnp'],
    doc: 'What may reach pods of all namespaces and interfaces of nodes, and what they may reach.',
    spec: POLICY_SPECS.GlobalNetworkPolicy.schema,
    columns: POLICY_COLUMNS,
  }),
  resource({
    kind: 'StagedNetworkPolicy',
    plural: 'stagednetworkpolicies',
    short: ['snp'],
    aliases: ['spol'],
    namespaced: true,
    doc: 'A NetworkPolicy that is not in force: what it would do is shown.',
    spec: POLICY_SPECS.StagedNetworkPolicy.schema,
    columns: STAGED_COLUMNS,
  }),
  resource({
    kind: 'StagedGlobalNetworkPolicy',
    plural: 'stagedglobalnetworkpolicies',
    short: ['sgnp'],
    doc: 'A GlobalNetworkPolicy that is not in force: what it would do is shown.',
    spec: POLICY_SPECS.StagedGlobalNetworkPolicy.schema,
    columns: STAGED_COLUMNS,
  }),
  resource({
    kind: 'StagedKubernetesNetworkPolicy',
    plural: 'stagedkubernetesnetworkpolicies',
    short: ['sknp'],
    namespaced: true,
    doc: 'A NetworkPolicy of networking.k8s.io that is not in force: what it would do is shown.',
    spec: POLICY_SPECS.StagedKubernetesNetworkPolicy.schema,
    columns: [column('Action', 'string', '.spec.stagedAction')],
  }),
  resource({
    kind: 'Tier',
    plural: 'tiers',
    doc: 'Policies that are asked together, before or after those of other tiers.',
    spec: tierSpec.schema,
    columns: [column('Order', 'number'), column('DefaultAction')],
    conditions: TIER_CONDITIONS,
  }),
  resource({
    kind: 'NetworkSet',
    plural: 'networksets',
    short: ['netset'],
    namespaced: true,
    doc: 'Addresses outside, with labels that policies of its namespace select.',
    spec: networkSetSpec.schema,
    columns: [column('Nets')],
  }),
  resource({
    kind: 'GlobalNetworkSet',
    plural: 'globalnetworksets',
    short: ['gns'],
    aliases: ['gnetset'],
    doc: 'Addresses outside, with labels that policies select.',
    spec: networkSetSpec.schema,
    columns: [column('Nets')],
  }),
  resource({
    kind: 'Profile',
    plural: 'profiles',
    aliases: ['pro'],
    doc: 'Rules for where no policy decides, and labels, of the host endpoints that name it.',
    spec: profileSpec.schema,
  }),
  resource({
    kind: 'HostEndpoint',
    plural: 'hostendpoints',
    short: ['hep'],
    doc: 'Interfaces of a node that policy applies to.',
    spec: hostEndpointSpec.schema,
    columns: [
      column('Node'),
      column('Interface', 'string', '.spec.interfaceName'),
      wide('IPs', '.spec.expectedIPs'),
      wide('Profiles', '.spec.profiles'),
    ],
  }),
]

const ADDRESSES: readonly Resource[] = [
  resource({
    kind: 'IPPool',
    plural: 'ippools',
    aliases: ['pool', 'ipp'],
    doc: "Where pods' addresses come from, and how their packets travel.",
    spec: ipPoolSpec.schema,
    columns: [
      column('CIDR', 'string', '.spec.cidr'),
      column('VXLAN', 'string', '.spec.vxlanMode'),
      column('NAT', 'boolean', '.spec.natOutgoing'),
      wide('Disabled', '.spec.disabled', 'boolean'),
      wide('BlockSize', '.spec.blockSize', 'integer'),
      wide('Nodes', '.spec.nodeSelector'),
    ],
    fixed: ['cidr', 'blockSize'],
  }),
  resource({
    kind: 'IPAMBlock',
    plural: 'ipamblocks',
    doc: "A part of a pool that one node gives its pods addresses from. The agents' own: not to be written by hand.",
    spec: ipBlockSpec.schema,
    columns: [column('CIDR', 'string', '.spec.cidr'), column('Node')],
    fixed: ['cidr'],
  }),
  resource({
    kind: 'NodeNetwork',
    plural: 'nodenetworks',
    short: ['nodenet'],
    doc: "What nodes tell each other: where a node is reached, and which of the pods' addresses lead to it. The agents' own: not to be written by hand.",
    spec: nodeNetworkSpec.schema,
    status: nodeNetworkStatusSchema,
    columns: [
      ...[column('Addresses'), column('PodCIDRs', 'string', '.spec.podCIDRs'), column('Blocks')],
      ...[column('Mode', 'string', '.status.dataplane.mode'), column('Proof', 'string', '.status.proof.state')],
    ],
  }),
]

/** Plural names of the kinds that are in namespaces. */
export const NAMESPACED_PLURALS: readonly string[] = [...POLICIES, ...ADDRESSES]
  .filter(({ namespaced }) => namespaced)
  .map(({ plural }) => plural)

export const IS_DEFAULT: Condition = { rule: "self.metadata.name == 'default'", message: 'metadata.name must be default' }

/** `felix`: the settings of the agent, which are its own business. */
export function resources(felix: Schema): readonly Resource[] {
  return [
    ...POLICIES,
    ...ADDRESSES,
    resource({
      kind: 'FelixConfiguration',
      plural: 'felixconfigurations',
      short: ['felixconfig'],
      doc: 'Settings of the agents: of all nodes in the object default, of one in node.<name>, which goes first.',
      spec: felix,
      columns: [column('Services', 'string', '.spec.bpfExternalServiceMode'), column('Log', 'string', '.spec.logSeverityScreen')],
      conditions: [
        {
          rule: "self.metadata.name == 'default' || self.metadata.name.startsWith('node.')",
          message: 'metadata.name must be default or node.<name>',
        },
      ],
    }),
    resource({
      kind: 'ControllersConfiguration',
      plural: 'controllersconfigurations',
      aliases: ['controllersconfig', 'kubecontrollersconfiguration', 'kubecontrollersconfig'],
      doc: 'Settings of the controllers.',
      spec: controllersConfigurationSpec.schema,
      status: statusSchema({
        observedGeneration,
        runningConfig: {
          ...controllersConfigurationSpec.schema,
          description: 'What counts: the last spec that was accepted, with every default.',
        },
      }),
      columns: [
        column('AutoCreate', 'string', '.status.runningConfig.controllers.node.hostEndpoint.autoCreate'),
        column('Accepted', 'string', conditionPath('Accepted', 'status')),
        column('Synced', 'string', conditionPath('Synced', 'status')),
      ],
      conditions: [IS_DEFAULT],
    }),
    resource({
      kind: 'ClusterInformation',
      plural: 'clusterinformations',
      short: ['clusterinfo'],
      doc: 'What is known of the cluster as a whole.',
      spec: clusterInformationSpec.schema,
      columns: [
        column('Version', 'string', '.spec.netplaneVersion'),
        column('Nodes', 'integer', '.spec.dataplane.nodes'),
        column('Ready', 'integer', '.spec.dataplane.ready'),
        column('Updated', 'integer', '.spec.dataplane.updated'),
      ],
      conditions: [IS_DEFAULT],
    }),
  ]
}
