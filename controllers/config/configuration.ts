// SPDX-License-Identifier: Apache-2.0
/** The ControllersConfiguration: what counts of it, and what its status says. Layer: controllers (pure). */
import { isObject } from '#lib/base/object.ts'
import type { Rejected } from '#lib/base/result.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { defaultSettings, readSettings, type Settings } from './settings.ts'

export const CONFIGURATION = { apiVersion: 'netplane.io/v3', kind: 'ControllersConfiguration' } as const

/** As an administrator finds it who has made none. */
export const EMPTY_CONFIGURATION: ApiObject = { ...CONFIGURATION, metadata: { name: 'default' }, spec: {} }

export interface Configured {
  readonly settings: Settings
  /** why the spec is not what counts; empty: it is */
  readonly rejected: readonly Pick<Rejected, 'path' | 'reason'>[]
}

/** A spec that is refused leaves what counted before: `last`, or after a start what the status says of it. */
export function configuredBy(object: ApiObject | undefined, last: Settings | undefined): Configured {
  const read = readSettings(object?.['spec'])
  if (read.kind === 'accepted') return { settings: read.settings, rejected: [] }
  const status = isObject(object?.['status']) ? object['status'] : {}
  const before = readSettings(status['runningConfig'])
  return { settings: last ?? (before.kind === 'accepted' ? before.settings : defaultSettings()), rejected: read.rejected }
}

/** Of the work that it asks for. */
export interface Work {
  readonly ok: boolean
  /** one word */
  readonly reason: string
  readonly message: string
}

export function configurationStatus(
  { settings, rejected }: Configured,
  about: { readonly found: ApiObject; readonly work: Work; readonly now: string },
): Readonly<Record<string, unknown>> {
  const { found, work, now } = about
  const { generation = 0 } = found.metadata
  const reasons = rejected.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
  const accepted: Work =
    rejected.length === 0
      ? { ok: true, reason: 'Accepted', message: 'the spec counts' }
      : { ok: false, reason: 'Refused', message: `${reasons}. What counts is in status.runningConfig` }
  const condition = (type: string, { ok, reason, message }: Work): object => {
    const status = ok ? 'True' : 'False'
    const before = findCondition(found, type)
    const since = before?.status === status && before.since !== '' ? before.since : now
    return { type, status, reason, message, lastTransitionTime: since, observedGeneration: generation }
  }
  return {
    observedGeneration: generation,
    runningConfig: settings.running,
    conditions: [condition('Accepted', accepted), condition('Synced', work)],
  }
}
