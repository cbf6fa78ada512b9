// SPDX-License-Identifier: Apache-2.0
/** How a DaemonSet or a Deployment is, from its own counts and its pods. Layer: lib/control (pure). */
import { isObject } from '../base/object.ts'
import type { ApiObject } from '../api/resource.ts'
import { namesText } from './names-text.ts'
import { podTrouble, type PodTrouble } from './pod-trouble.ts'

/** What a component says of itself; each part undefined where it does not hold. */
export interface ComponentState {
  /** what there is to say where it is available */
  readonly available?: Cause
  /** why it is not available */
  readonly unavailable?: Cause
  readonly progressing?: Cause
  readonly degraded?: Cause
  /** what is to be known beside, and holds up nothing */
  readonly notes?: readonly string[]
}

export interface Cause {
  /** one word */
  readonly reason: string
  readonly message: string
  /** what may change while the reason stays, and is worth being told again; counts and names are not */
  readonly kind?: string
}

interface Counts {
  readonly wanted: number
  readonly updated: number
  readonly available: number
}

/** Troubles that waiting does not cure. */
const GRAVE: ReadonlySet<PodTrouble['reason']> = new Set(['CrashLoop', 'ImagePull', 'PodFailed'])

/** `workload`: undefined where it has not been made yet. `pods`: its own. `applied`: the generation that it had when it
 * was last applied, which a watch may not have told of yet. */
export function rolloutState(workload: ApiObject | undefined, pods: readonly ApiObject[], applied = 0): ComponentState {
  if (workload === undefined) {
    const cause = { reason: 'NotCreated', message: 'its object has not been made yet' }
    return { unavailable: cause, progressing: cause }
  }
  const counts = (workload.metadata.generation ?? 0) < applied ? undefined : countsOf(workload)
  if (counts === undefined) {
    const cause = {
      reason: 'NotObserved',
      message: `the controller of ${workload.kind} ${workload.metadata.name} has not seen its last change yet`,
    }
    return { unavailable: cause, progressing: cause }
  }
  const { wanted, updated, available } = counts
  const troubles = pods.flatMap((pod) => podTrouble(pod) ?? [])
  const grave = troubles.filter(({ reason }) => GRAVE.has(reason))
  const rolling = updated < wanted || available < wanted
  const progress = {
    reason: 'RollingOut',
    message: `${updated} of ${wanted} pods are of the newest version, ${available} are ready${waiting(troubles)}`,
  }
  return {
    ...(available < wanted ? { unavailable: grave.length > 0 ? causeOf(grave) : progress } : {}),
    ...(rolling ? { progressing: progress } : {}),
    ...(grave.length > 0 ? { degraded: causeOf(grave) } : {}),
  }
}

/** As its controller counts its pods; undefined: it has not counted them since the object was changed. */
function countsOf({ kind, metadata, ...object }: ApiObject): Counts | undefined {
  const status = isObject(object['status']) ? object['status'] : {}
  const spec = isObject(object['spec']) ? object['spec'] : {}
  if (status['observedGeneration'] !== metadata.generation) return undefined
  const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
  if (kind === 'DaemonSet')
    return {
      wanted: count(status['desiredNumberScheduled']),
      updated: count(status['updatedNumberScheduled']),
      available: count(status['numberAvailable']),
    }
  const { replicas = 1 } = spec
  return { wanted: count(replicas), updated: count(status['updatedReplicas']), available: count(status['availableReplicas']) }
}

function waiting(troubles: readonly PodTrouble[]): string {
  const nodes = troubles.map(({ node }) => node)
  return nodes.length === 0 ? '' : `; not ready: ${namesText(nodes)}`
}

/** Of pods with a trouble that waiting does not cure. */
export function troubleCause(pods: readonly ApiObject[]): Cause | undefined {
  const grave = pods.flatMap((pod) => podTrouble(pod) ?? []).filter(({ reason }) => GRAVE.has(reason))
  return grave.length === 0 ? undefined : causeOf(grave)
}

/** All that have the first one's reason, with its message. */
function causeOf(troubles: readonly PodTrouble[]): Cause {
  const [first] = troubles
  if (first === undefined) return { reason: 'NotReady', message: '' }
  const nodes = troubles.filter(({ reason }) => reason === first.reason).map(({ node }) => node)
  return { reason: first.reason, message: `${namesText(nodes)}: ${first.message}` }
}
