// SPDX-License-Identifier: Apache-2.0
/** The controllers: account, rights, Deployment. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { CONTROLLERS_NAME } from '../kube/objects/automatic-host-endpoint.ts'
import { account, type RbacRule } from './account.ts'
import { CONTROL_TOLERATIONS, controlDeployment } from './control-pod.ts'
import { NODE, type RenderInput } from './input.ts'

const HEALTH_PORT = 9097

/** In all of the cluster. */
const RULES: readonly RbacRule[] = [
  { apiGroups: ['netplane.io'], resources: ['controllersconfigurations'], verbs: ['list', 'watch', 'create'] },
  { apiGroups: ['netplane.io'], resources: ['controllersconfigurations/status'], verbs: ['patch'] },
  { apiGroups: ['netplane.io'], resources: ['hostendpoints'], verbs: ['list', 'watch', 'create', 'update', 'delete'] },
  { apiGroups: ['netplane.io'], resources: ['nodenetworks'], verbs: ['list', 'watch'] },
  { apiGroups: ['netplane.io'], resources: ['clusterinformations'], verbs: ['list', 'watch', 'create', 'patch'] },
  { apiGroups: ['netplane.io'], resources: ['ipamblocks'], verbs: ['list', 'delete'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] },
  // addresses that are in use
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch'] },
]

/** In its own namespace: the Lease, and how many agents are ready. */
function ownRules(daemonSet: string): readonly RbacRule[] {
  return [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [CONTROLLERS_NAME], verbs: ['get', 'update'] },
    { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [daemonSet], verbs: ['get'] },
  ]
}

/** The account with its rights, then what runs by it. */
export function renderControllers({ namespace, image, computed, endpoint, daemonSet = NODE }: RenderInput): readonly ApiObject[] {
  const { resources, tolerations, nodeSelector, annotations } = computed.controllerPods
  const pods = {
    imagePullSecrets: computed.imagePullSecrets.map((name) => ({ name })),
    podAnnotations: annotations ?? {},
    dnsConfig: {},
    resources: resources ?? { requests: { cpu: '50m', memory: '110Mi' } },
    nodeSelector: { 'kubernetes.io/os': 'linux', ...nodeSelector },
    tolerations: [...CONTROL_TOLERATIONS, ...tolerations],
  }
  const named = daemonSet === NODE ? [] : [`--daemon-set=${daemonSet}`]
  const args = ['--namespace=$(NAMESPACE)', ...named, `--health-port=${HEALTH_PORT}`]
  const deployment = controlDeployment({ program: CONTROLLERS_NAME, namespace, image, pods, args, endpoint, healthPort: HEALTH_PORT })
  return [...account({ name: CONTROLLERS_NAME, namespace, rules: RULES, ownRules: ownRules(daemonSet) }), deployment].map(asApiObject)
}
