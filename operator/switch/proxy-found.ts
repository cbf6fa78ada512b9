// SPDX-License-Identifier: Apache-2.0
/** kube-proxy as it is found: whether it runs, and who may stop it. Layer: operator (pure). */
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import type { NodeNetworkStatus } from '#lib/kube/objects/node-network-status.ts'
import type { ProxyAction } from '#lib/render/providers.ts'
import { managerOf } from '../objects/manager.ts'
import { FIELD_MANAGER, settersOf } from '../objects/owned-fields.ts'

/** By which OpenShift's own operator is told. */
export const PLATFORM_NETWORK: Named = { apiVersion: 'operator.openshift.io/v1', kind: 'Network', name: 'cluster' }

/** Of the DaemonSet's node selector: no node has it. */
export const STOP_LABEL = 'netplane.io/kube-proxy'
export const STOP_VALUE = 'disabled'

/** `stopped`: by us. `stopped-by-hand`: by another, who starts it again. */
export type ProxyState = 'absent' | 'running' | 'stopped' | 'stopped-by-hand'

export interface ProxyFound {
  readonly action: ProxyAction
  readonly state: ProxyState
  /** "DaemonSet kube-system/kube-proxy" */
  readonly what: string
  /** of one that was stopped by hand, what no node has: "non-calico=true"; empty: it is not that */
  readonly selector: string
  /** another's, who would put it back: "Argo CD (argocd.argoproj.io/instance: x)"; undefined: there is none */
  readonly manager: string | undefined
  /** it is stopped and started by a write of ours */
  readonly canBeChanged: boolean
  /** its controller has seen its last change */
  readonly isSettled: boolean
  /** by node: whether its pod there is ready */
  readonly pods: ReadonlyMap<string, boolean>
  /** by node: since when a pod of it there is ready, in ms since 1970 */
  readonly readySince: ReadonlyMap<string, number>
  /** each node that it serves has a pod of it; false: that pods are seen is not sure */
  readonly hasPods: boolean
  /** agents alone see it, and none has said anything yet */
  readonly isUnsaid: boolean
}

export interface ProxyInput {
  readonly action: ProxyAction
  /** kube-system/kube-proxy */
  readonly daemonSet: ApiObject | undefined
  /** OpenShift's own */
  readonly network: ApiObject | undefined
  readonly pods: Iterable<ApiObject>
  readonly nodes: readonly ApiObject[]
  /** of each node, where the platform has it in no pod: what its agent says; none where pods show it */
  readonly sight: readonly NodeNetworkStatus['kubeProxy'][]
}

export function proxyFound({ action, daemonSet, network, pods, nodes, sight }: ProxyInput): ProxyFound {
  const ofPods = podsByNode(pods)
  if (action === 'platform-operator') return ofPlatform(network, ofPods)
  if (daemonSet === undefined) {
    const isSeen = ofPods.pods.size > 0 || sight.includes('Present')
    return {
      ...{
        action,
        state: isSeen ? 'running' : 'absent',
        what: 'kube-proxy',
        selector: '',
        manager: undefined,
        canBeChanged: false,
        isSettled: true,
      },
      ...{ ...ofPods, hasPods: false, isUnsaid: !isSeen && sight.length > 0 && sight.every((said) => said === undefined) },
    }
  }
  const manager = managerOf(daemonSet)
  const state = daemonSetState(daemonSet, nodes)
  return {
    action,
    state,
    selector: state === 'stopped-by-hand' ? strangeSelector(daemonSet, nodes) : '',
    what: `DaemonSet ${daemonSet.metadata.namespace ?? ''}/${daemonSet.metadata.name}`,
    manager,
    canBeChanged: action === 'node-selector' && manager === undefined,
    isSettled: fieldsOf(daemonSet['status'])['observedGeneration'] === daemonSet.metadata.generation,
    ...ofPods,
    hasPods: true,
    isUnsaid: false,
  }
}

function nodeSelectorOf(daemonSet: ApiObject): Readonly<Record<string, unknown>> {
  return fieldsOf(fieldsOf(fieldsOf(fieldsOf(daemonSet['spec'])['template'])['spec'])['nodeSelector'])
}

/** Labels that no node has; all of them where each is on some node. */
function strangeSelector(daemonSet: ApiObject, nodes: readonly ApiObject[]): string {
  const entries = Object.entries(nodeSelectorOf(daemonSet))
  const strange = entries.filter(([key, value]) => nodes.every(({ metadata }) => metadata.labels?.[key] !== value))
  return (strange.length > 0 ? strange : entries).map(([key, value]) => `${key}=${textOf(value)}`).join(', ')
}

export function daemonSetState(daemonSet: ApiObject, nodes: readonly ApiObject[]): ProxyState {
  const selector = nodeSelectorOf(daemonSet)
  if (selector[STOP_LABEL] === STOP_VALUE) return 'stopped'
  const entries = Object.entries(selector)
  const isAnywhere = nodes.length === 0 || nodes.some(({ metadata }) => entries.every(([key, value]) => metadata.labels?.[key] === value))
  return isAnywhere ? 'running' : 'stopped-by-hand'
}

function ofPlatform(network: ApiObject | undefined, ofPods: PodsFound): ProxyFound {
  const { deployKubeProxy } = fieldsOf(network?.['spec'])
  const isSetByUs = network !== undefined && settersOf(network, 'deployKubeProxy').includes(FIELD_MANAGER)
  const isOff = deployKubeProxy !== true && ofPods.pods.size === 0
  const state = deployKubeProxy === false ? (isSetByUs ? 'stopped' : 'stopped-by-hand') : isOff ? 'absent' : 'running'
  const what = 'Network.operator.openshift.io cluster'
  // whose owner is the platform itself, which follows what is asked for there
  const manager = network === undefined ? undefined : managerOf({ ...network, metadata: { ...network.metadata, ownerReferences: [] } })
  const canBeChanged = network !== undefined && manager === undefined
  return {
    action: 'platform-operator',
    state,
    what,
    selector: '',
    manager,
    canBeChanged,
    isSettled: true,
    ...ofPods,
    hasPods: true,
    isUnsaid: false,
  }
}

type PodsFound = Pick<ProxyFound, 'pods' | 'readySince'>

/** Pods that are about to go are not ready. */
function podsByNode(all: Iterable<ApiObject>): PodsFound {
  const pods = new Map<string, boolean>()
  const readySince = new Map<string, number>()
  for (const pod of all) {
    const node = textOf(fieldsOf(pod['spec'])['nodeName'])
    if (node === '') continue
    const ready = pod.metadata.deletionTimestamp === undefined ? findCondition(pod, 'Ready') : undefined
    pods.set(node, pods.get(node) === true || ready?.status === 'True')
    const since = Date.parse(ready?.since ?? '')
    if (ready?.status === 'True' && !Number.isNaN(since)) readySince.set(node, since)
  }
  return { pods, readySince }
}
