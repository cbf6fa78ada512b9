// SPDX-License-Identifier: Apache-2.0
/** What is installed, and how it stands. Layer: upgrade (pure). */
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { compareVersions, parseVersion } from '#lib/base/text/version.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { namesText } from '#lib/control/names-text.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import type { Refusal } from '../../refusal.ts'
import { CONTAINER, imageVersion, podSpecOf } from '../agents.ts'
import type { Check } from '../check.ts'
import { objectsOf, resourceText } from '../objects.ts'
import { betweenCharts, OPERATOR, type Traits } from '../traits.ts'
import { datastoreOf, installationIn } from '../variant.ts'

const MANIFEST_NAMESPACE = 'kube-system'
const OPERATOR_NAMESPACE = 'netplane-system'
const NAMES = ['netplane-node', 'canal', 'canal-node']
const OLDEST = [3, 15, 0] as const
/** Older versions of the form that is read here: their line ends before it. */
const AFTER_LAST = [3, 32, 0] as const
/** Of nodes whose agents an operator takes over from manifests. */
const TAKEN_OVER = 'netplane.io/operator-node-migration'
/** Of the agent, in a DaemonSet. */
const AGENT = `spec.template.spec.containers[${CONTAINER}]`
const IMAGE = `${AGENT}.image`
/** Variables of every manifest whose value is in its config map. */
const USUAL: ReadonlySet<string> = new Set(['FELIX_IPINIPMTU', 'FELIX_VXLANMTU', 'FELIX_WIREGUARDMTU'])

export const INSTALLATION_REFUSALS: readonly Check[] = [
  { when: 'no agents are installed', find: nothing },
  { when: 'there are two installations', find: several },
  { when: 'agents are in a DaemonSet of an unknown name or namespace', find: misplaced },
  { when: 'agents are of an operator that is not there', find: withoutOperator },
  { when: 'the version cannot be told', find: unknownVersion },
  { when: 'the version is older than v3.15, or an unknown newer one', find: otherVersion },
  { when: 'resources are in etcd', find: inEtcd },
  { when: 'a part of it is being deleted', find: beingDeleted },
  { when: "a change of the chart's release has not ended", find: pendingRelease },
  { when: "the chart's release is of another namespace than its operator", find: releaseElsewhere },
  { when: 'an operator is taking nodes over from manifests', find: takingOver },
]

export const INSTALLATION_WARNINGS: readonly Check[] = [
  { when: 'agents run another version than their DaemonSet says', find: unfinished },
  { when: 'agents are not ready on some nodes', find: unready },
  { when: 'a setting of the agents is not said in words', find: elsewhere },
]

function nothing({ agents, operator }: Traits): readonly Refusal[] {
  if (agents.length > 0) return []
  const resource = operator === undefined ? 'DaemonSet' : resourceText(operator)
  const reason = operator === undefined ? `no DaemonSet has a container ${CONTAINER}` : 'the operator is there, and has installed nothing'
  return [{ resource, field: '', value: undefined, reason, remedy: 'Install this version instead: see docs/install.md' }]
}

function several({ agents, main, operator }: Traits): readonly Refusal[] {
  const names = namesText(agents.map(({ daemonSet }) => resourceText(daemonSet)))
  if (agents.length > 1 && main === undefined)
    return [
      {
        ...{ resource: names, field: '', value: undefined, reason: 'each of them runs agents, and nodes can have one' },
        remedy: 'Take away all but the one that the nodes go by',
      },
    ]
  if (operator === undefined || main?.namespace !== MANIFEST_NAMESPACE) return []
  return [
    {
      ...{ resource: resourceText(operator), field: '', value: undefined },
      reason: `${resourceText(main.daemonSet)} was installed by a manifest, and the operator is there as well`,
      remedy: 'Delete the Deployment of the operator, or let it take the nodes over first',
    },
  ]
}

function misplaced({ agents }: Traits): readonly Refusal[] {
  return agents.flatMap(({ daemonSet, namespace }) => {
    const isNamed = NAMES.includes(daemonSet.metadata.name)
    if (isNamed && [MANIFEST_NAMESPACE, OPERATOR_NAMESPACE].includes(namespace)) return []
    return [
      {
        ...{ resource: resourceText(daemonSet), field: isNamed ? 'metadata.namespace' : 'metadata.name' },
        value: isNamed ? namespace : daemonSet.metadata.name,
        reason: `agents are in ${NAMES.join(', ')} of ${MANIFEST_NAMESPACE} or ${OPERATOR_NAMESPACE}, where they were installed as documented`,
        remedy: 'Install the same version by its own manifest first, in place of this one',
      },
    ]
  })
}

function withoutOperator({ main, operator }: Traits): readonly Refusal[] {
  if (main?.namespace !== OPERATOR_NAMESPACE || operator !== undefined) return []
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: '', value: undefined, reason: `no Deployment ${OPERATOR} looks after it` },
      remedy: 'Apply the manifest of the operator of this version again',
    },
  ]
}

function unknownVersion({ main, version, stored }: Traits): readonly Refusal[] {
  if (main === undefined || version !== undefined) return []
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: IMAGE },
      value: main.container['image'],
      reason: `neither the image nor ${stored === undefined ? 'a ClusterInformation' : 'ClusterInformation default'} says a version`,
      remedy: 'Set an image whose tag is the version, as v3.27.0',
    },
  ]
}

function otherVersion({ main, version }: Traits): readonly Refusal[] {
  const parsed = version === undefined ? undefined : parseVersion(version)
  if (main === undefined || parsed === undefined) return []
  const isOld = compareVersions(parsed, OLDEST) < 0
  const isNew = !main.isOurs && compareVersions(parsed, AFTER_LAST) >= 0
  if (!isOld && !isNew) return []
  return [
    {
      ...{
        resource: resourceText(main.daemonSet),
        field: IMAGE,
        value: `v${version ?? ''}`,
      },
      reason: isOld ? 'upgrades begin at v3.15' : 'how this version keeps its objects is not known here',
      remedy: isOld ? 'Upgrade to v3.15 or later by the manifests of that version first' : 'Use the netplanectl of a later version',
    },
  ]
}

function inEtcd({ main }: Traits): readonly Refusal[] {
  if (main === undefined || datastoreOf(main) === 'kubernetes') return []
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: `${AGENT}.env` },
      ...{ value: main.environment.values['ETCD_ENDPOINTS'], reason: 'resources are in etcd' },
      remedy: 'Move them into the API server first, by the netplanectl of the installed version: netplanectl datastore migrate',
    },
  ]
}

/** Charts before 3.23 named the namespace of each object themselves. Those of this version go by the release's. */
function releaseElsewhere({ operator, release }: Traits): readonly Refusal[] {
  const namespace = operator?.metadata.namespace
  if (operator === undefined || release === undefined || release.namespace === namespace) return []
  return [
    {
      ...{ resource: `release ${release.name}`, field: 'namespace', value: release.namespace },
      reason: `the operator is in ${namespace ?? ''}, and the chart of this version has one namespace`,
      remedy:
        `Give the release up: kubectl -n ${release.namespace} delete secrets -l owner=helm,name=${release.name}, ` +
        "and take the annotations meta.helm.sh/… from the operator's Deployment; the upgrade goes by the operator then",
    },
  ]
}

function beingDeleted({ facts, main, operator }: Traits): readonly Refusal[] {
  const namespaces = objectsOf(facts, '', 'Namespace').filter(({ metadata }) => metadata.name === main?.namespace)
  const parts = [main?.daemonSet, operator, installationIn(facts), ...namespaces].filter((part) => part !== undefined)
  return parts.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(deletedRefusal)
}

export function deletedRefusal(object: ApiObject): Refusal {
  return {
    ...{ resource: resourceText(object), field: 'metadata.deletionTimestamp', value: object.metadata.deletionTimestamp },
    ...{ reason: 'it is being deleted', remedy: 'Wait until it is gone, and see what is left then' },
  }
}

/** That of a run which was cut off is taken back by the next one. */
function pendingRelease({ release, facts }: Traits): readonly Refusal[] {
  if (release?.record === undefined || !release.status.startsWith('pending-')) return []
  if (betweenCharts(facts)?.metadata.namespace === release.namespace) return []
  const { namespace, name, status, record } = release
  return [
    {
      ...{ resource: resourceText(record), field: "metadata.labels['status']", value: status },
      reason: 'another change of this release has not ended, and Helm refuses a second one',
      remedy: `Wait for it, or take it back: helm rollback ${name} -n ${namespace}`,
    },
  ]
}

function takingOver({ facts, main }: Traits): readonly Refusal[] {
  const nodes = objectsOf(facts, '', 'Node').filter(({ metadata }) => metadata.labels?.[TAKEN_OVER] !== undefined)
  const selected = textOf(fieldsOf(main && podSpecOf(main.daemonSet)['nodeSelector'])[TAKEN_OVER])
  if (nodes.length === 0 && selected === '') return []
  const names = namesText(nodes.map(({ metadata }) => metadata.name))
  return [
    {
      resource: nodes.length > 0 || main === undefined ? `Node ${names}` : resourceText(main.daemonSet),
      field: nodes.length > 0 ? `metadata.labels['${TAKEN_OVER}']` : `spec.template.spec.nodeSelector['${TAKEN_OVER}']`,
      value: nodes[0]?.metadata.labels?.[TAKEN_OVER] ?? selected,
      reason: 'an operator is taking the nodes over from a manifest',
      remedy: 'Let it come to its end; of one that was given up, take the label away',
    },
  ]
}

/** What was edited is told by the manifest of the DaemonSet's own version. */
function unfinished({ main, version }: Traits): readonly Refusal[] {
  const wanted = main && imageVersion(textOf(main.container['image']))
  if (main === undefined || main.isOurs || wanted === undefined || version === wanted) return []
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: IMAGE, value: main.container['image'] },
      reason: `most agents run v${version ?? ''}: its last change has not come to its end`,
      remedy: `Let it end first: kubectl -n ${main.namespace} rollout status daemonset ${main.daemonSet.metadata.name}`,
    },
  ]
}

function unready({ main }: Traits): readonly Refusal[] {
  const pods = main?.pods.filter((pod) => findCondition(pod, 'Ready')?.status !== 'True') ?? []
  if (main === undefined || pods.length === 0) return []
  const nodes = namesText(pods.map(({ metadata, spec }) => textOf(fieldsOf(spec)['nodeName']) || metadata.name))
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: 'status.numberReady', value: main.pods.length - pods.length },
      reason: `agents are not ready on ${nodes}`,
      remedy: `See why before nodes are changed: kubectl -n ${main.namespace} describe pod ${pods[0]?.metadata.name ?? ''}`,
    },
  ]
}

function elsewhere({ main }: Traits): readonly Refusal[] {
  if (main === undefined || main.isOurs) return []
  const variables = [...main.environment.elsewhere].filter(([name]) => /^FELIX_/i.test(name) && !USUAL.has(name.toUpperCase()))
  return variables.map(([name, place]) => ({
    resource: resourceText(main.daemonSet),
    field: `${AGENT}.env[${name}]`,
    value: main.environment.values[name],
    reason: `its value stands in ${place}`,
    remedy: 'Write it into FelixConfiguration default, or say it in words',
  }))
}
