// SPDX-License-Identifier: Apache-2.0
/** What the operator keeps of a node's switch: an annotation of the node's FelixConfiguration, written in the same
 * write as the mode. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { MODES, type Mode } from '#lib/kube/objects/node-network-status.ts'

export const MARK = 'operator.netplane.io/switch'

/** Another value of this annotation of the Installation: nodes that went back are tried again. */
export const RETRY = 'operator.netplane.io/retry-switch'

export interface Mark {
  readonly to: Mode
  /** when the node was asked, in ms since 1970 */
  readonly at: number
  /** of the node: one that is made anew under its name is another; undefined: written by an older operator */
  readonly uid?: string
  /** node ports of it that answered the operator just before, "192.0.2.1:30080", "192.0.2.1:30053/UDP" */
  readonly outside?: readonly string[]
  /** the node that asked them in the operator's place, as this was the operator's own; undefined: the operator did */
  readonly from?: string
  /** it went back; undefined: it has not */
  readonly failed?: Failure | undefined
}

export interface Failure {
  readonly reason: string
  /** of the Installation that asked */
  readonly generation: number
  /** value of {@link RETRY} then */
  readonly retry: string
}

/** As much of a reason as is kept. */
const MOST_REASON = 500

export function markText({ to, at, uid, outside = [], from, failed }: Mark): string {
  const more =
    failed === undefined ? {} : { failed: failed.reason.slice(0, MOST_REASON), generation: failed.generation, retry: failed.retry }
  return JSON.stringify({ to, at: new Date(at).toISOString(), uid, ...(outside.length > 0 && { outside }), from, ...more })
}

/** Undefined: there is none, or none that can be read. */
export function markOf({ metadata }: ApiObject): Mark | undefined {
  const fields = fieldsOf(parsed(metadata.annotations?.[MARK] ?? ''))
  const to = MODES.find((mode) => mode === fields['to'])
  const at = Date.parse(textOf(fields['at']))
  if (to === undefined || Number.isNaN(at)) return undefined
  const { uid, from, failed, generation, retry } = fields
  const places: readonly unknown[] = Array.isArray(fields['outside']) ? fields['outside'] : []
  const texts = { ...(typeof uid === 'string' && { uid }), ...(typeof from === 'string' && { from }) }
  const asked = { to, at, ...texts, ...(places.length > 0 && { outside: places.map(textOf) }) }
  if (typeof failed !== 'string' || typeof generation !== 'number') return asked
  return { ...asked, failed: { reason: failed, generation, retry: textOf(retry) } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
