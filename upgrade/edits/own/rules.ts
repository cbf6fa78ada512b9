// SPDX-License-Identifier: Apache-2.0
/** Edits of workloads of this form: where the next version says the same. Layer: upgrade (pure). */
import { textOf } from '#lib/base/object.ts'
import { layerFromEnvironment } from '#agent/config/layers.ts'
import { allFields } from '#agent/config/schema.ts'
import { carried, kept, left, refused, type Difference } from '../edit.ts'
import { repositoryOf } from '../image.ts'
import { rule, unlessGone, variables, type Decide, type EditRule } from '../rule.ts'
import { endpoint } from '../rules/network.ts'
import { metadataRules, mirrored, podRules, rollRules } from '../rules/pods.ts'
import { RIGHTS_RULES } from '../rules/rights.ts'

const ENTERPRISE = 'netplane-enterprise'
const USUAL = 'netplane'

const ENDPOINT: readonly EditRule[] = [
  rule(variables('CLUSTER_SERVICE_HOST'), endpoint('host')),
  rule(variables('CLUSTER_SERVICE_PORT'), endpoint('port')),
]

/** Each container names it, and they must agree. The other product is the same programs. */
const image: Decide = (edit, around) => {
  const own = repositoryOf(textOf(edit.base))
  const isOther = own.endsWith(USUAL) && repositoryOf(textOf(edit.mine)).split('/').at(-1) === ENTERPRISE
  if (!isOther) return mirrored(edit, around)
  const copy = textOf(edit.mine)
  const variant = { variant: 'NetplaneEnterprise' }
  const outcome = copy === ENTERPRISE ? carried('installation', [], {}) : mirrored({ ...edit, base: ENTERPRISE }, around)
  return outcome.kind === 'carried' ? { ...outcome, value: { ...(outcome.value as object), ...variant } } : outcome
}

/** The environment goes before every FelixConfiguration: what it says is that of all nodes. */
const felix: Decide = ({ steps, mine }) => {
  const name = (steps.at(-1) ?? '').slice(1, -1)
  if (typeof mine !== 'string') return refused('its value is not said in words', 'Write its value, or set the field of FelixConfiguration.')
  const [field, value] = Object.entries(layerFromEnvironment({ [name]: mine }).spec)[0] ?? ['', undefined]
  const group = Object.entries(typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {})[0]
  const full = group === undefined ? field : `${field}.${group[0]}`
  const parser = allFields.find((one) => one.name === full)?.parser
  if (parser === undefined) return left('agents do not read it')
  const outcome = parser.parse(group === undefined ? (value ?? '') : group[1])
  if (outcome.kind === 'refused') return refused(`it ${outcome.reason}`, 'Set it to another value, or take it away.')
  return group === undefined ? carried('felix', [field], value) : carried('felix', [field, group[0]], group[1])
}

const flagValue = ({ mine }: Difference): string => textOf(mine).replace(/^[^=]*=?/, '')

const FLAG = refused('pods have the flags of their version alone', 'Put the flags back; settings are those of FelixConfiguration.')

/** What is not there: an earlier form of the file did not have it, or it was taken away. */
const AGAIN = left('the next version has it in any case')

/** Neither did earlier forms of this version have these. */
const ADDED: readonly EditRule[] = [
  rule(
    ['container.env[NODE_NAME]*', 'container.terminationMessagePolicy'],
    unlessGone(AGAIN, () => FLAG),
  ),
]

const AGENT_FLAGS: readonly EditRule[] = [
  rule(
    'container.args[--cni-mtu]',
    unlessGone(FLAG, (edit) => carried('installation', ['netplaneNetwork', 'mtu'], Number(flagValue(edit)))),
  ),
  rule(
    'container.args[--cni-no-host-ports]',
    unlessGone(FLAG, () => carried('installation', ['netplaneNetwork', 'hostPorts'], 'Disabled')),
  ),
  rule(
    'container.args[--cni-conf-on-node]',
    unlessGone(AGAIN, (edit) => carried('installation', ['cni', 'confDir'], flagValue(edit))),
  ),
  rule(
    'container.args[--cni-bin-on-node]',
    unlessGone(AGAIN, (edit) => carried('installation', ['cni', 'binDir'], flagValue(edit))),
  ),
  rule(
    'container.args[--node-root]',
    unlessGone(AGAIN, () => FLAG),
  ),
  rule('container.args*', FLAG),
]

const FOLDERS = refused('agents have folders of this version alone', 'Take the volume away, or put its folder back where it was.')

const PROBED = ['FELIX_HEALTHENABLED', 'FELIX_HEALTHHOST', 'FELIX_HEALTHPORT', 'FELIX_CGROUPV2PATH']

export const OWN_AGENT_RULES: readonly EditRule[] = [
  ...AGENT_FLAGS,
  rule(variables(...PROBED), refused('probes and folders of the pod go by it', 'Put it back.')),
  rule(variables('FELIX_*'), unlessGone(refused('this manifest says it for agents of its kind', 'Put it back.'), felix)),
  ...ENDPOINT,
  rule(['container.image', 'pod.containers[datastore].image', 'pod.initContainers[mounts].image'], image),
  rule(
    'pod.volumes[cni-bin].hostPath.path',
    unlessGone(FOLDERS, ({ mine }) => carried('installation', ['cni', 'binDir'], mine)),
  ),
  rule(
    'pod.volumes[cni-conf].hostPath.path',
    unlessGone(FOLDERS, ({ mine }) => carried('installation', ['cni', 'confDir'], mine)),
  ),
  rule(
    ['pod.volumes[node-root]*', 'container.volumeMounts[/host]*'],
    unlessGone(AGAIN, () => FOLDERS),
  ),
  rule(['pod.volumes[*]*', 'container.volumeMounts[*]*'], FOLDERS),
  ...podRules('nodePods'),
  ...rollRules,
  rule(
    ['pod.containers[*]', 'pod.initContainers[*]'],
    refused('there is no place for containers of others', 'Run it by a DaemonSet of its own.'),
  ),
  ...metadataRules,
]

export const OWN_CONTROLLERS_RULES: readonly EditRule[] = [
  rule(
    'container.args*',
    unlessGone(AGAIN, () => FLAG),
  ),
  ...ADDED,
  ...ENDPOINT,
  rule('container.image', image),
  ...podRules('controllerPods'),
  rule(['spec.replicas', 'spec.strategy*'], left('one of the controllers acts at a time, by its Lease')),
  rule(
    ['pod.containers[*]', 'pod.initContainers[*]'],
    refused('there is no place for containers of others', 'Run it by a Deployment of its own.'),
  ),
  ...metadataRules,
]

const AS_IT_IS = kept("the operator's Deployment of this version, which gets the same")

/** What a Deployment of this version gets from the one before it, whole. */
export const OWN_OPERATOR_RULES: readonly EditRule[] = [
  rule(
    [
      ...['container.resources*', 'pod.tolerations[*]*', 'pod.nodeSelector*', 'pod.imagePullSecrets[*]', 'pod.dnsConfig*'],
      'spec.template.metadata.annotations*',
    ],
    AS_IT_IS,
  ),
  rule('container.image', (edit, around) => {
    const outcome = mirrored(edit, around)
    return outcome.kind === 'carried' ? AS_IT_IS : outcome
  }),
  rule(
    'container.args*',
    unlessGone(AGAIN, () => refused('the operator has the flags of its version alone', 'Put the flags back.')),
  ),
  ...ADDED,
  rule('spec.replicas', left('one of the operators acts at a time, by its Lease')),
  rule(
    ['pod.affinity*', 'pod.topologySpreadConstraints*', 'pod.priorityClassName', 'spec.template.metadata.labels.*'],
    refused('pods of the operator have those of its version alone', 'Put it back; their nodeSelector and tolerations stay.'),
  ),
  ...podRules('controllerPods').filter(carriesNothing),
  ...metadataRules,
]

/** Of the rules of pods those that carry nothing. */
function carriesNothing({ fields }: EditRule): boolean {
  return fields.some((field) => /Probe|securityContext|terminationGrace|imagePullPolicy/.test(field))
}

/** The first table that is for the object counts, and in it the first rule. */
export const OWN_TABLES: readonly (readonly [what: string, isFor: (edit: Difference) => boolean, rules: readonly EditRule[]])[] = [
  ['Agents of ours', ({ kind }) => kind === 'DaemonSet', OWN_AGENT_RULES],
  ['The operator of ours', ({ kind, name }) => kind === 'Deployment' && name === 'netplane-operator', OWN_OPERATOR_RULES],
  ['Controllers of ours', ({ kind }) => kind === 'Deployment', OWN_CONTROLLERS_RULES],
  ['Constraints', ({ kind }) => kind === 'SecurityContextConstraints', [rule('*', left('rights are those that this version needs'))]],
  ['Rights', () => true, RIGHTS_RULES],
]
