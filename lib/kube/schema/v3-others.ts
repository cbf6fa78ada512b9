// SPDX-License-Identifier: Apache-2.0
/** Shapes of the specs of netplane.io/v3 kinds that the agent's store does not hold. Layer: lib/kube. */
import { field, listed, object, required } from './shape.ts'
import { flag, integer, matching, name, net, text, texts, word } from './primitives.ts'
import { selector } from './v3-rules.ts'

const switched = word('Enabled', 'Disabled')
const duration = matching(/^([0-9]{1,9}(ms|s|m|h))+$/, 'must be a duration like 1h30m, 90s or 250ms')
const reconciled = object({ reconcilerPeriod: field('How often everything is compared, whatever has changed.', duration) })

const hostEndpointTemplate = object({
  generateName: required('What names of its endpoints end with.', name),
  interfaceCIDRs: listed('Ranges of the addresses that it is of.', net, { most: 64 }),
  interfacePattern: field('Names of the interfaces that it is of, as a regular expression.', text),
  labels: field('Labels of its endpoints.', texts),
  nodeSelector: field('Nodes that it is for, by their labels; all when it is missing.', selector),
})

const nodeController = object({
  reconcilerPeriod: field('How often everything is compared, whatever has changed.', duration),
  syncLabels: field('Whether host endpoints have the labels of their nodes.', switched),
  leakGracePeriod: field('How long an address must have been without its pod before it is taken back.', duration),
  hostEndpoint: field(
    'Host endpoints that are made by themselves.',
    object({
      autoCreate: field('Whether there are any.', switched),
      createDefaultHostEndpoint: field('Whether each node has one for all its interfaces.', switched),
      templates: listed('Others, besides or instead.', hostEndpointTemplate, { most: 64 }),
    }),
  ),
})

const controllers = object({
  node: field('Nodes: labels, host endpoints, addresses that leaked.', nodeController),
  policy: field('Network policies.', reconciled),
  workloadEndpoint: field('Pods.', reconciled),
  serviceAccount: field('Service accounts.', reconciled),
  namespace: field('Namespaces.', reconciled),
  loadBalancer: field(
    'Addresses of services of type LoadBalancer.',
    object({ assignIPs: field('Who gets one.', word('AllServices', 'RequestedServicesOnly')) }),
  ),
})

export const controllersConfigurationSpec = object({
  logSeverityScreen: field('What is logged: this and everything graver.', word('Debug', 'Info', 'Warning', 'Error', 'Fatal')),
  healthChecks: field('Whether health is served.', switched),
  prometheusMetricsPort: field('TCP port of /metrics; 0: none.', integer(0, 65_535)),
  controllers: field('What each controller does.', controllers),
})

const dataplane = object({
  nodes: required('Nodes that should have an agent.', integer(0, 2_147_483_647)),
  ready: required('Those of them whose data plane is in place.', integer(0, 2_147_483_647)),
  updated: required('Those of them whose agent is of the newest version.', integer(0, 2_147_483_647)),
})

export const clusterInformationSpec = object({
  clusterGUID: field('Made once, unique to the cluster.', text),
  clusterType: field('What is known of where it runs.', text),
  netplaneVersion: field('The version that all nodes have, or move to.', text),
  datastoreReady: field('Shown only: made true, then left as an administrator puts it. No agent goes by it.', flag),
  dataplane: field('On how many nodes the data plane is in place.', dataplane),
})
