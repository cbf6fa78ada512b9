// SPDX-License-Identifier: Apache-2.0
/** Why a pod does not run, by what its status says. Layer: operator (pure). */
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'

export interface PodTrouble {
  readonly reason: 'CrashLoop' | 'ImagePull' | 'PodFailed' | 'PodPending' | 'NotReady'
  /** the pod's; its name where it has none yet */
  readonly node: string
  readonly message: string
}

const IMAGE_REASONS: ReadonlySet<unknown> = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'])

/** Undefined: it is ready, or about to go. */
export function podTrouble(pod: ApiObject): PodTrouble | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined
  const status = recordOf(pod['status'])
  const node = textOf(recordOf(pod['spec'])['nodeName']) || pod.metadata.name
  for (const container of [...listOf(status['initContainerStatuses']), ...listOf(status['containerStatuses'])]) {
    const { reason } = recordOf(recordOf(container['state'])['waiting'])
    const name = textOf(container['name'])
    if (reason === 'CrashLoopBackOff') return { reason: 'CrashLoop', node, message: `${name} ends again and again: ${lastEnd(container)}` }
    if (IMAGE_REASONS.has(reason)) return { reason: 'ImagePull', node, message: `image ${textOf(container['image'])} cannot be pulled` }
    const restarts = container['restartCount']
    if (container['ready'] !== true && typeof restarts === 'number' && restarts > 1 && hasEnded(container))
      return { reason: 'CrashLoop', node, message: `${name} ends again and again: ${lastEnd(container)}` }
  }
  if (status['phase'] === 'Failed') return { reason: 'PodFailed', node, message: textOf(status['message']) || textOf(status['reason']) }
  const conditions = listOf(status['conditions'])
  const unscheduled = conditions.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False')
  if (unscheduled !== undefined) return { reason: 'PodPending', node, message: textOf(unscheduled['message']) }
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready?.['status'] === 'True' ? undefined : { reason: 'NotReady', node, message: textOf(ready?.['message']) }
}

function hasEnded(container: Readonly<Record<string, unknown>>): boolean {
  return recordOf(container['lastState'])['terminated'] !== undefined
}

function lastEnd(container: Readonly<Record<string, unknown>>): string {
  const { reason, exitCode } = recordOf(recordOf(container['lastState'])['terminated'])
  return typeof exitCode === 'number' ? `${textOf(reason)}, exit code ${exitCode}` : 'why is not known'
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
