// SPDX-License-Identifier: Apache-2.0
/** How a node stands to the mode that is asked for. Layer: operator (pure). */
import type { Mode, NodeNetworkStatus } from '#lib/kube/objects/node-network-status.ts'
import { waitedFor } from './lock-times.ts'
import { askedMode, overrideName, type NodeFound, type Observed } from './observed.ts'

/** `unready`, `skipped`: its kubelet says nothing, and it is waited for, or not any more. `mute`: its agent says
 * nothing. `refused`: it went back, and is not asked again. `pending`: it has not been asked. `changing`: it was asked.
 * `failed`: it was asked, and does not serve. `serves`: so it was proven. */
export type Stand = 'unready' | 'skipped' | 'mute' | 'refused' | 'pending' | 'changing' | 'failed' | 'serves'

export interface Standing {
  readonly node: NodeFound
  readonly stand: Stand
  /** why it failed; empty: it did not */
  readonly why: string
  /** the mode was proven there, also where its agent does not go by the newest configurations yet */
  readonly isProven: boolean
}

export interface StandingInput {
  readonly observed: Observed
  readonly to: Mode
  /** of the Installation */
  readonly generation: number
  readonly retry: string
  readonly nodeTimeoutMs: number
  /** when the mode was asked for, in ms since 1970: time before is no node's */
  readonly askedAt: number
  /** words of an agent count only where it goes by the configuration that there is */
  readonly isStrict: boolean
}

export function standingOf(node: NodeFound, input: StandingInput): Standing {
  const { observed, to, generation, retry, nodeTimeoutMs, askedAt } = input
  const of = (stand: Stand, why = ''): Standing => ({ node, stand, why, isProven: stand === 'serves' })
  if (!node.isReady) return of(waitedFor(Math.max(node.unreadySince, askedAt), observed) < nodeTimeoutMs ? 'unready' : 'skipped')
  const mark = observed.overrides.get(node.name)?.mark
  if (askedMode(node.name, observed) !== to) {
    const { failed } = mark ?? {}
    if (mark?.to === to && failed?.generation === generation && failed.retry === retry) return of('refused', failed.reason)
    return of(node.status === undefined ? 'mute' : 'pending')
  }
  const isLate = mark?.to === to && waitedFor(lastMove(mark.at, node.status), observed) >= nodeTimeoutMs
  const late = `did not serve within ${nodeTimeoutMs / 1000} s`
  if (node.status === undefined) return isLate ? of('failed', `${late}: its agent says nothing`) : of('mute')
  const proof = proofIn(node.status, to)
  const isCurrent = !input.isStrict || goesByAll(node, observed)
  const outside = mark?.to === to ? (mark.outside ?? []) : []
  const silent = outside.length === 0 ? [] : observed.outside.get(node.name)
  const isProven = proof?.state === 'Proven' && silent?.length === 0
  if (isProven && isCurrent) return of('serves')
  if (proof?.state === 'Proven' && isCurrent && silent?.[0] !== undefined)
    return of('failed', `${silent[0]} does not answer from outside the node`)
  if (proof?.state === 'Failed' && isCurrent) return of('failed', proof.failed[0] ?? 'services do not answer')
  return isLate ? of('failed', late) : { ...of('changing'), isProven }
}

/** When it was asked, or has said something since, in ms since 1970. */
function lastMove(askedAt: number, status: NodeNetworkStatus | undefined): number {
  const times = [status?.dataplane.since, status?.proof?.at].map((text) => Date.parse(text ?? ''))
  return Math.max(askedAt, ...times.filter((time) => !Number.isNaN(time)))
}

/** That counts: of this mode, and after the node has changed to it. */
export function proofIn({ dataplane, proof }: NodeNetworkStatus, mode: Mode): NodeNetworkStatus['proof'] {
  if (dataplane.mode !== mode || proof?.mode !== mode) return undefined
  return Date.parse(proof.at) >= Date.parse(dataplane.since) ? proof : undefined
}

/** The agent goes by the FelixConfigurations that there are, each as it is now. */
function goesByAll({ name, status }: NodeFound, observed: Observed): boolean {
  const own = overrideName(name)
  const used = status?.dataplane.configurations ?? {}
  return used['default'] === observed.default?.generation && used[own] === observed.overrides.get(name)?.generation
}
