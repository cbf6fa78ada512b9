// SPDX-License-Identifier: Apache-2.0
/** Edits of the Deployment of older controllers. Layer: upgrade (pure). */
import { textOf } from '#lib/base/object.ts'
import { carried, left, refused, type EditOutcome } from '../edit.ts'
import { rule, unlessGone, variables, type Decide, type EditRule } from '../rule.ts'
import { endpoint } from './network.ts'
import { metadataRules, podRules } from './pods.ts'

const DEFAULT = left('ControllersConfiguration says it')
const NODE = ['controllers', 'node'] as const

function switched(isOn: boolean): string {
  return isOn ? 'Enabled' : 'Disabled'
}

const autoHostEndpoints: Decide = ({ mine }) =>
  carried('controllers', [...NODE, 'hostEndpoint', 'autoCreate'], switched(/^(enabled|true)$/i.test(textOf(mine))))

/** Of stores without these kinds the other ones have nothing to do. */
const WITHOUT_ETCD: ReadonlySet<string> = new Set(['node', 'loadbalancer', 'policy', 'namespace', 'serviceaccount', 'workloadendpoint'])

function enabled(list: string): EditOutcome {
  const names = list.split(',').map((name) => name.trim())
  const other = names.find((name) => !WITHOUT_ETCD.has(name))
  if (other !== undefined) return refused(`there is no controller ${other}`, 'Take its name out of the list.')
  if (!names.includes('node')) return refused('the controller of nodes always runs', 'Put node into the list.')
  return left('the controller of nodes runs, and there is no other')
}

/** "INFO" → "Info": the schema decides whether it is one. */
function severity(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase()
}

export const CONTROLLERS_RULES: readonly EditRule[] = [
  rule(variables('AUTO_HOST_ENDPOINTS'), unlessGone(DEFAULT, autoHostEndpoints)),
  rule(
    variables('ENABLED_CONTROLLERS'),
    unlessGone(DEFAULT, ({ mine }) => enabled(textOf(mine))),
  ),
  rule(
    variables('SYNC_NODE_LABELS'),
    unlessGone(DEFAULT, ({ mine }) => carried('controllers', [...NODE, 'syncLabels'], switched(mine !== 'false'))),
  ),
  rule(
    variables('RECONCILER_PERIOD'),
    unlessGone(DEFAULT, ({ mine }) => carried('controllers', [...NODE, 'reconcilerPeriod'], mine)),
  ),
  rule(
    variables('LOG_LEVEL'),
    unlessGone(DEFAULT, ({ mine }) => carried('controllers', ['logSeverityScreen'], severity(textOf(mine)))),
  ),
  rule(
    variables('DATASTORE_TYPE', 'ETCD_*'),
    refused('the variant has its resources in the API server', 'Put it back, or upgrade as the variant for etcd.'),
  ),
  rule(variables('CLUSTER_SERVICE_HOST', 'KUBERNETES_SERVICE_HOST'), endpoint('host')),
  rule(variables('CLUSTER_SERVICE_PORT', 'KUBERNETES_SERVICE_PORT'), endpoint('port')),
  rule(variables('HEALTHENABLED', 'COMPACTION_PERIOD'), left('controllers of this version do not read it')),
  ...podRules('controllerPods'),
  rule(['spec.replicas', 'spec.strategy*'], left('one of the controllers acts at a time, by its Lease')),
  rule(['pod.hostNetwork', 'pod.dnsPolicy'], left("controllers of this version have their node's network")),
  rule('pod.containers[*]', refused('there is no place for containers of others', 'Run it by a Deployment of its own.')),
  ...metadataRules,
]
