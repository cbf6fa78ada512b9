// SPDX-License-Identifier: Apache-2.0
/** Status of this node's NodeNetwork: in which mode it serves, and whether that was proven. Layer: agent/status.
 *
 * Each change of it goes to every node's agent, so it is written for what the operator waits for. */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isRefused } from '#lib/api/errors.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { nodeNetworkStatusOf, type NodeNetworkStatus, type Proof } from '#lib/kube/objects/node-network-status.ts'
import type { InMode } from '../proof/node-mode.ts'
import type { Due, Subject } from './outbox.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** How many flows are left is written no more often. */
const FLOWS_MS = 600_000
const SHOWN = 10
const LONGEST = 1024

export interface NodeModeStatusOptions {
  readonly api: Pick<StatusApi, 'list' | 'patch'>
  readonly node: string
  readonly version: string
  /** its NodeNetwork is there */
  readonly isAnnounced: () => boolean
  /** undefined: the node does not serve yet */
  readonly inMode: () => InMode | undefined
  /** of the FelixConfigurations that this node goes by, by their names */
  readonly generations: () => Readonly<Record<string, number>>
  /** rules of a kube-proxy are on this node; undefined: not known yet */
  readonly hasProxy: () => boolean | undefined
  /** flows that are still the other mode's; undefined: not known yet */
  readonly otherFlows: () => number | undefined
}

export class NodeModeStatus implements Subject {
  readonly name = 'mode'
  readonly #options: NodeModeStatusOptions
  /** as it was last written, or found at the start; undefined: not known */
  #written: NodeNetworkStatus | undefined
  #isRead = false
  #writtenAt = -Infinity

  constructor(options: NodeModeStatusOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    const { isAnnounced, node } = this.#options
    if (!isAnnounced()) this.#written = undefined
    if (!isAnnounced() || this.#options.inMode() === undefined) return []
    if (!this.#isRead) return [{ key: node, write: (signal) => this.#read(signal) }]
    const wanted = this.#wanted()
    if (wanted === undefined || deepEqual(wanted, this.#written)) return []
    const { flows, ...rest } = wanted
    const { flows: before, ...restBefore } = this.#written ?? {}
    const areFlowsAlone = deepEqual(rest, restBefore) && (flows?.other === 0) === (before?.other === 0)
    if (areFlowsAlone && now < this.#writtenAt + FLOWS_MS) return []
    return [{ key: node, write: (signal) => this.#write(wanted, now, signal) }]
  }

  #wanted(): NodeNetworkStatus | undefined {
    const { inMode, version, generations, hasProxy, otherFlows } = this.#options
    const current = inMode()
    if (current === undefined) return undefined
    const [proxy, other] = [hasProxy(), otherFlows()]
    const isSame = this.#written?.dataplane.mode === current.mode
    return {
      version,
      dataplane: {
        mode: current.mode,
        since: (isSame ? this.#written?.dataplane.since : undefined) ?? stamp(current.since),
        configurations: generations(),
      },
      proof: this.#proof(current),
      kubeProxy: proxy === undefined ? this.#written?.kubeProxy : proxy ? 'Present' : 'Absent',
      flows: other === undefined ? this.#written?.flows : { other },
    }
  }

  /** One that is no news stays as it was written. */
  #proof(current: InMode): Proof | undefined {
    const now = proofOf(current)
    const before = this.#written?.proof
    const isNews = now !== undefined && (now.state !== 'Proven' || isFromPodAtLast(before, now))
    return before?.mode === current.mode && before.state === 'Proven' && !isNews ? before : now
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    this.#written = nodeNetworkStatusOf((await lookUp(api, { ...NODE_NETWORK, name: node }, signal))?.['status'])
    this.#isRead = true
  }

  async #write(wanted: NodeNetworkStatus, now: number, signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    // a merge takes away what is null
    const status = { ...wanted, ...Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, value ?? null])) }
    const before = Object.keys(this.#written?.dataplane.configurations ?? {})
    const configurations = { ...Object.fromEntries(before.map((name) => [name, null])), ...wanted.dataplane.configurations }
    const patch = { status: { ...status, dataplane: { ...wanted.dataplane, configurations } } }
    try {
      await api.patch({ ...NODE_NETWORK, name: node }, patch, { signal, timeoutMs: TIMEOUT_MS, type: 'merge', subresource: 'status' })
    } catch (thrown) {
      // it went: the next round has heard of that
      if (isRefused(thrown, 'NotFound')) return
      throw thrown
    }
    this.#written = wanted
    this.#writtenAt = now
  }
}

/** Undefined until services were asked. */
function proofOf({ mode, proof }: InMode): Proof | undefined {
  if (proof === undefined) return undefined
  const { asked, answered, failed, nodePorts, udpNodePorts, at } = proof
  const fromPod = { ...proof.fromPod, reason: (proof.fromPod.reason ?? '').slice(0, LONGEST) }
  const shown = failed.slice(0, SHOWN).map((text) => text.slice(0, LONGEST))
  const state = failed.length === 0 ? 'Proven' : 'Failed'
  return { mode, state, asked, answered, fromPod, failed: shown, nodePorts, udpNodePorts, at: stamp(at) }
}

/** Until now the node had asked alone. */
function isFromPodAtLast(before: Proof | undefined, now: Proof): boolean {
  return now.fromPod?.reason === '' && before?.fromPod?.reason !== ''
}

function stamp(ms: number): string {
  return new Date(ms).toISOString()
}
