// SPDX-License-Identifier: Apache-2.0
/** Sandboxes that are being added: they may have an address already and be on no disk yet. Layer: agent/cni. */
import type { Pod } from '#lib/model/pod.ts'
import { CniError } from './cni-error.ts'
import type { PodSandbox } from './request.ts'

export interface InProgressAddsOptions {
  /** a pod as its source has it */
  readonly known: (pod: { readonly namespace: string; readonly name: string }) => Pick<Pod, 'uid'> | undefined
  /** aborts with the reason when the agent stops */
  readonly stop: AbortSignal
}

/** One call of ADD, in progress until it is disposed of. */
export interface InProgressAdd extends Disposable {
  readonly sandbox: PodSandbox
  /** aborts when no runtime waits for it any more, and says why */
  readonly signal: AbortSignal
  /** It ends where it stands, and answers with the reason. */
  giveUp(reason: string): void
  /** Its container is busy until the work is over, even after the call has ended. */
  keep(work: Promise<unknown>): void
}

export class InProgressAdds {
  readonly #options: InProgressAddsOptions
  readonly #all = new Set<InProgressAdd>()
  /** ids of containers, one for each work that goes on */
  readonly #busy = new Set<{ readonly containerId: string }>()

  constructor(options: InProgressAddsOptions) {
    this.#options = options
  }

  /** A runtime that asks for another sandbox of a pod has given up the earlier ones: an earlier one that finished
   * later would take its place. */
  begin(sandbox: PodSandbox): InProgressAdd {
    for (const one of this.#others(sandbox)) one.giveUp(`another sandbox of the pod is asked for: ${sandbox.containerId}`)
    const ended = new AbortController()
    const add: InProgressAdd = {
      sandbox,
      signal: AbortSignal.any([this.#options.stop, ended.signal]),
      giveUp: (reason) => {
        ended.abort(new CniError('tryAgain', reason))
      },
      keep: (work) => {
        this.#keep(sandbox, work)
      },
      [Symbol.dispose]: () => {
        this.#all.delete(add)
        add.giveUp('the call is over')
      },
    }
    this.#all.add(add)
    return add
  }

  /** Several: a runtime that was killed asks for one again while its first ADD still runs. */
  of(containerId: string): readonly InProgressAdd[] {
    return [...this.#all].filter(({ sandbox }) => sandbox.containerId === containerId)
  }

  get sandboxes(): readonly PodSandbox[] {
    return [...this.#all].map(({ sandbox }) => sandbox)
  }

  isBusy(containerId: string): boolean {
    return [...this.#busy].some((one) => one.containerId === containerId)
  }

  #keep({ containerId }: PodSandbox, work: Promise<unknown>): void {
    const busy = { containerId }
    const over = (): void => {
      this.#busy.delete(busy)
    }
    this.#busy.add(busy)
    void work.then(over, over)
  }

  /** Of the same pod: nothing but uids tells it from another of its name, where a source says them. */
  #others({ containerId, namespace, pod, uid }: PodSandbox): readonly InProgressAdd[] {
    const known = this.#options.known({ namespace, name: pod })
    const areTold = known === undefined || known.uid !== undefined
    const isNamesake = (one: PodSandbox): boolean => one.namespace === namespace && one.pod === pod && one.containerId !== containerId
    const isOther = (one: PodSandbox): boolean => areTold && uid !== undefined && one.uid !== undefined && uid !== one.uid
    return [...this.#all].filter(({ sandbox }) => isNamesake(sandbox) && !isOther(sandbox))
  }
}
