// SPDX-License-Identifier: Apache-2.0
/** The pods of sandboxes, as their sources have them: without its labels it is not known which rules apply to a pod.
 * Layer: agent/cni. */
import { waitUntil, type Notifier, type WaitLimits } from '#lib/base/async/wait.ts'
import type { Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import { refOf } from './attachments.ts'
import { CniError } from './cni-error.ts'
import type { PodOverlaySink } from './pod-overlay-sink.ts'
import type { PodSandbox } from './request.ts'

export interface NodeState {
  /** the sources are read */
  readonly synced: boolean
  /** other nodes know where pods of this one are */
  readonly announced: boolean
  /** why nothing may be written down for a new pod; undefined: it may */
  readonly locked: string | undefined
  /** any of what is asked here may be otherwise than it was */
  readonly changed: Notifier
}

export interface SandboxPodsOptions {
  /** this node's name */
  readonly name: string
  readonly pods: PodOverlaySink
  readonly node: NodeState
}

export class SandboxPods {
  readonly #options: SandboxPodsOptions

  constructor(options: SandboxPodsOptions) {
    this.#options = options
  }

  /** Until a source has it, the datastore is open, and other nodes can reach it. Rejects as {@link waitUntil} does. */
  async wait(sandbox: PodSandbox, limits: WaitLimits): Promise<void> {
    const { pods, node } = this.#options
    await waitUntil({ ...limits, missing: () => this.#missing(sandbox), wokenBy: [pods.changed, node.changed] })
  }

  /** Throws CniError when no source has it. */
  get(sandbox: PodSandbox): Pod {
    const pod = this.#find(sandbox)
    if (pod === undefined) throw new CniError('tryAgain', goneText(sandbox))
    return pod
  }

  /** Calls `run` with the reason when no source has it any more, until the result is disposed of. */
  whenGone(sandbox: PodSandbox, run: (reason: string) => void): Disposable {
    return this.#options.pods.changed.subscribe(() => {
      if (this.#find(sandbox) === undefined) run(goneText(sandbox))
    })
  }

  #missing(sandbox: PodSandbox): string | undefined {
    const { node, pods, name } = this.#options
    if (!node.synced) return 'the sources are not read yet'
    if (this.#find(sandbox) !== undefined) return node.locked ?? (node.announced ? undefined : 'other nodes have not heard of this one')
    const other = pods.known(refOf(sandbox))
    const which = other === undefined ? '' : ` with the uid ${sandbox.uid ?? ''}, which the runtime says, but with ${other.uid ?? ''}`
    return `no source has Pod ${nameKey(refOf(sandbox))} on node ${name}${which}`
  }

  /** Another pod of the same name has other labels and wishes, perhaps: what we know may be old, or the call. */
  #find(sandbox: PodSandbox): Pod | undefined {
    const pod = this.#options.pods.known(refOf(sandbox))
    return pod?.uid === undefined || sandbox.uid === undefined || pod.uid === sandbox.uid ? pod : undefined
  }
}

function goneText(sandbox: PodSandbox): string {
  return `Pod ${nameKey(refOf(sandbox))} is gone`
}
