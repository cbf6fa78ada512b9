// SPDX-License-Identifier: Apache-2.0
/** Why a pod does not run, by what its status says. Layer: lib/control (pure). */
import { fieldsOf, objectsIn, textOf } from '../base/object.ts'
import { withoutMiddle } from '../base/text/without-middle.ts'
import type { ApiObject } from '../api/resource.ts'

export interface PodTrouble {
  readonly reason: 'CrashLoop' | 'ImagePull' | 'PodFailed' | 'PodPending' | 'NotReady'
  /** the pod's; its name where it has none */
  readonly node: string
  readonly message: string
}

const IMAGE_REASONS: ReadonlySet<unknown> = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'])

/** Undefined: it is ready, or about to go. */
export function podTrouble(pod: ApiObject): PodTrouble | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined
  const status = fieldsOf(pod['status'])
  const node = nodeOf(pod)
  for (const container of [...objectsIn(status['initContainerStatuses']), ...objectsIn(status['containerStatuses'])]) {
    const { reason, message } = fieldsOf(fieldsOf(container['state'])['waiting'])
    const name = textOf(container['name'])
    if (reason === 'CrashLoopBackOff') return { reason: 'CrashLoop', node, message: `${name} ends again and again: ${lastEnd(container)}` }
    if (IMAGE_REASONS.has(reason)) return { reason: 'ImagePull', node, message: imageText(textOf(container['image']), textOf(message)) }
    const restarts = container['restartCount']
    if (container['ready'] !== true && typeof restarts === 'number' && restarts > 1 && hasEnded(container))
      return { reason: 'CrashLoop', node, message: `${name} ends again and again: ${lastEnd(container)}` }
  }
  if (status['phase'] === 'Failed') return { reason: 'PodFailed', node, message: textOf(status['message']) || textOf(status['reason']) }
  const conditions = objectsIn(status['conditions'])
  const unscheduled = conditions.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False')
  if (unscheduled !== undefined) return { reason: 'PodPending', node, message: textOf(unscheduled['message']) }
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready?.['status'] === 'True' ? undefined : { reason: 'NotReady', node, message: textOf(ready?.['message']) }
}

const MOST_CAUSE = 300
/** Kubelets tell of the cause with it while they wait to try again, and without it while they try. */
const BACK_OFF = /^Back-off pulling image "[^"]*"(: (ErrImagePull: )?)?/

/** With the runtime's own cause, where the kubelet tells it. */
function imageText(image: string, message: string): string {
  const cause = message.replace(BACK_OFF, '')
  return `image ${image} cannot be pulled${cause === '' ? '' : `: ${withoutMiddle(cause, MOST_CAUSE)}`}`
}

/** Where it is, or would be; its own name where that is not known. */
function nodeOf({ spec, metadata }: ApiObject): string {
  const affinity = fieldsOf(fieldsOf(fieldsOf(spec)['affinity'])['nodeAffinity'])
  const [term = {}] = objectsIn(fieldsOf(affinity['requiredDuringSchedulingIgnoredDuringExecution'])['nodeSelectorTerms'])
  // a DaemonSet's pod is bound to one node before it is scheduled
  const [field = {}] = objectsIn(term['matchFields']).filter(({ key }) => key === 'metadata.name')
  const named: unknown = Array.isArray(field['values']) ? field['values'][0] : undefined
  return textOf(fieldsOf(spec)['nodeName']) || textOf(named) || metadata.name
}

function hasEnded(container: Readonly<Record<string, unknown>>): boolean {
  return fieldsOf(container['lastState'])['terminated'] !== undefined
}

function lastEnd(container: Readonly<Record<string, unknown>>): string {
  const { reason, exitCode } = fieldsOf(fieldsOf(container['lastState'])['terminated'])
  return typeof exitCode === 'number' ? `${textOf(reason)}, exit code ${exitCode}` : 'why is not known'
}
