// SPDX-License-Identifier: Apache-2.0
/** What a step of installing or removing has come to, and what both need. Layer: operator. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Component } from '#lib/kube/operator-resources.ts'
import type { Computed } from '#lib/render/computed.ts'
import { NODE, type Endpoint } from '#lib/render/input.ts'
import { secretsBinding } from '#lib/render/operator-pod.ts'
import { renderNamespace } from '#lib/render/render.ts'
import { isOurs } from '../objects/owned-fields.ts'
import { copyPullSecrets } from '../objects/pull-secrets.ts'
import { wasInstalled } from '../status/installation-status.ts'
import type { OwnedObjects } from '../objects/owned-objects.ts'
import type { EventWriter } from '#lib/control/event-writer.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'
import type { Trouble } from '../objects/owned-objects.ts'
import type { ClusterFactsReader } from './cluster-facts.ts'
import type { PassOptions } from './pass.ts'

export interface StepOptions extends PassOptions {
  readonly owned: OwnedObjects
  readonly events: EventWriter
  readonly facts: ClusterFactsReader
  /** of some components, before the others are known */
  readonly tell: (installation: ApiObject, states: ReadonlyMap<Component, ComponentState>, signal: AbortSignal) => Promise<void>
}

export interface Outcome {
  /** undefined: its spec is refused */
  readonly computed: Computed | undefined
  /** by which agents ask the API server; undefined: its service's address, or there are none */
  readonly endpoint: Endpoint | undefined
  /** agents were made: there is no preflight any more, and nodes are to be cleaned at the end */
  readonly isInstalled: boolean
  readonly states: ReadonlyMap<Component, ComponentState>
  /** of these what stands there, of the generation that it was known of */
  readonly keeps?: ReadonlySet<Component>
  /** it is to be looked at again after a while, also if nothing changes */
  readonly isAgain: boolean
}

/** So much in the cluster, and nothing else of ours. */
export async function make(objects: readonly ApiObject[], { owned, view, mayAct }: StepOptions, signal: AbortSignal): Promise<void> {
  owned.setDesired(objects)
  await owned.apply(mayAct, signal)
  await owned.prune(view.present(), mayAct, signal)
}

/** What could not be written goes before what pods say. */
export function withTroubles(state: ComponentState, troubles: readonly Trouble[]): ComponentState {
  const [first] = troubles
  if (first === undefined) return state
  const objects = namesText(troubles.map(({ object }) => object))
  return { ...state, degraded: { reason: first.reason, message: `${objects}: ${first.message}` } }
}

/** Of the namespace that we install in. */
export function daemonSet({ view, options }: Pick<StepOptions, 'view' | 'options'>, name: string): ApiObject | undefined {
  return view.daemonSets.objects.get(`${options.systemNamespace}/${name}`)
}

/** The DaemonSet or Deployment by this name of the namespace that we install in; of other kinds none. */
export function workload(
  of: Pick<StepOptions, 'view' | 'options'>,
  { kind, metadata: { name } }: { readonly kind: string; readonly metadata: { readonly name: string } },
): ApiObject | undefined {
  if (kind === 'DaemonSet') return daemonSet(of, name)
  return kind === 'Deployment' ? of.view.deployments.objects.get(`${of.options.systemNamespace}/${name}`) : undefined
}

/** Pods of our programs by this name. */
export function podsOf({ view }: Pick<StepOptions, 'view'>, name: string): readonly ApiObject[] {
  return [...view.pods.objects.values()].filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === name)
}

/** The agents' DaemonSet, where it is ours or is to be. */
export function ownAgents(of: Pick<StepOptions, 'view' | 'options'>): ApiObject | undefined {
  const found = daemonSet(of, NODE)
  return found !== undefined && isOurs(found) ? found : undefined
}

/** As the Installation's status says; one that was made anew finds the agents of the one before. */
export function isInstalled(installation: ApiObject, of: Pick<StepOptions, 'view' | 'options'>): boolean {
  return wasInstalled(installation) || ownAgents(of) !== undefined
}

/** A DaemonSet of agents that is not the Installation's: of a manifest, of a version before 3.31, or one of our own
 * name. */
export function otherAgents({ view, options: { systemNamespace } }: Pick<StepOptions, 'view' | 'options'>): Cause | undefined {
  const places = ['kube-system', 'netplane-system', systemNamespace].flatMap((namespace) => [
    `${namespace}/${NODE}`,
    `${namespace}/netplane-agent`,
  ])
  const other = places.find((place) => {
    const found = view.daemonSets.objects.get(place)
    return found !== undefined && (place !== `${systemNamespace}/${NODE}` || !isOurs(found))
  })
  if (other === undefined) return undefined
  const message = `DaemonSet ${other} runs agents of another installation: two would want each node`
  return { reason: 'OtherInstallation', message }
}

/** The namespace, and what is copied to it for its pods. */
export function placeOf(
  imagePullSecrets: readonly string[],
  { options, view }: Pick<StepOptions, 'view' | 'options'>,
): { readonly objects: readonly ApiObject[]; readonly wrong: Cause | undefined } {
  const to = options.systemNamespace
  const found = { from: options.namespace, sources: view.secrets.objects, copies: view.copiedSecrets.objects }
  const { objects, wrong } = copyPullSecrets({ names: imagePullSecrets, found, to })
  return { objects: [renderNamespace(to), asApiObject(secretsBinding({ from: options.namespace, to })), ...objects], wrong }
}
