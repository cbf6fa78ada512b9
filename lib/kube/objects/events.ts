// SPDX-License-Identifier: Apache-2.0
/** Events of Kubernetes about an object, both ways. Layer: lib/kube. */
import { fnv1a64 } from '../../base/hash.ts'
import { isObject } from '../../base/object.ts'

export interface Notice {
  readonly type: 'Normal' | 'Warning'
  readonly involved: Involved
  /** one word */
  readonly reason: string
  readonly message: string
  /** the program that reports it */
  readonly component: string
  readonly host: string
}

/** The object that it is about. */
export interface Involved {
  readonly apiVersion: string
  readonly kind: string
  /** undefined: it is in none */
  readonly namespace: string | undefined
  readonly name: string
  readonly uid: string | undefined
}

export interface FoundEvent {
  readonly count: number
  /** ms since 1970, in whole seconds; when it was reported last */
  readonly at: number
}

const API_VERSION = 'v1'
/** Where events live of what is in no namespace: the API server wants it so. */
const NO_NAMESPACE = 'default'
const LONGEST_MESSAGE = 1000
const LONGEST_NAME = 200

/** The same notice about the same object is the same event, whichever node reports it. */
export function eventNamed({ involved, reason, message }: Notice) {
  const { namespace = NO_NAMESPACE, name, uid = '' } = involved
  const digest = fnv1a64(JSON.stringify([involved.kind, uid, reason, message]))
  return { apiVersion: API_VERSION, kind: 'Event', namespace, name: `${firstOf(name)}.${digest}` } as const
}

/** The event of a notice that is reported for the first time. */
export function eventObject(notice: Notice, now: number) {
  const { type, involved, reason, message, component, host } = notice
  const { apiVersion, kind, namespace, name } = eventNamed(notice)
  return {
    apiVersion,
    kind,
    metadata: { namespace, name },
    involvedObject: involved,
    type,
    reason,
    message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message,
    source: { component, host },
    firstTimestamp: timeText(now),
    ...eventPatch(1, now),
  }
}

/** The change of an event whose notice is reported again. */
export function eventPatch(count: number, now: number) {
  return { count, lastTimestamp: timeText(now) }
}

export function readEvent(event: Readonly<Record<string, unknown>>): FoundEvent {
  const { count, lastTimestamp, metadata } = event
  const made = isObject(metadata) ? metadata['creationTimestamp'] : undefined
  const at = Date.parse(String(lastTimestamp ?? made))
  return { count: typeof count === 'number' ? count : 1, at: Number.isNaN(at) ? 0 : at }
}

/** So much of a name that it ends as names may. */
function firstOf(name: string): string {
  return name.slice(0, LONGEST_NAME).replace(/[^a-z0-9]+$/, '')
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
