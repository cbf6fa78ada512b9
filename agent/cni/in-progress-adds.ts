// SPDX-License-Identifier: Apache-2.0
/** Sandboxes that are being added: they may have an address already and be on no disk yet. Layer: agent/cni. */
import type { Pod } from '#lib/model/pod.ts'
import { CniError } from './cni-error.ts'
import type { PodSandbox } from './request.ts'

export interface InProgressAddsOptions {
  /** a pod as its source has it */
  readonly known: (pod: { readonly namespace: string; readonly name: string }) => Pick<Pod, 'uid'> | undefined
  /** a waiting ADD may have to end */
  readonly news: () => void
}

export class InProgressAdds {
  readonly #options: InProgressAddsOptions
  readonly #all = new Set<PodSandbox>()
  /** of those, the ones that no runtime wants any more, and why */
  readonly #unwanted = new Map<PodSandbox, string>()
  /** sandboxes for which work goes on, even if no caller waits for it */
  readonly #busy = new Set<PodSandbox>()

  constructor(options: InProgressAddsOptions) {
    this.#options = options
  }

  /** The add is in progress until the result is disposed of. A runtime that asks for another sandbox of a pod has given
   * up the earlier ones: an earlier one that finished later would take its place. */
  begin(sandbox: PodSandbox): Disposable {
    this.giveUp(this.#others(sandbox), `another sandbox of the pod is asked for: ${sandbox.containerId}`)
    this.#all.add(sandbox)
    return {
      [Symbol.dispose]: () => {
        this.#all.delete(sandbox)
        this.#unwanted.delete(sandbox)
      },
    }
  }

  /** Several: a runtime that was killed asks for one again while its first ADD still runs. */
  of(containerId: string): readonly PodSandbox[] {
    return [...this.#all].filter((one) => one.containerId === containerId)
  }

  /** Remembers the sandbox as busy until the work is over, even after its caller has given up. */
  keep(sandbox: PodSandbox, work: Promise<unknown>): void {
    const over = (): void => {
      this.#busy.delete(sandbox)
    }
    this.#busy.add(sandbox)
    void work.then(over, over)
  }

  isBusy(containerId: string): boolean {
    return [...this.#busy].some((one) => one.containerId === containerId)
  }

  /** They end where they stand. */
  giveUp(sandboxes: readonly PodSandbox[], reason: string): void {
    for (const one of sandboxes) this.#unwanted.set(one, reason)
    if (sandboxes.length > 0) this.#options.news()
  }

  /** The add is in progress, and a runtime waits for it. */
  isWanted(sandbox: PodSandbox): boolean {
    return this.#all.has(sandbox) && !this.#unwanted.has(sandbox)
  }

  /** Throws CniError with the reason. */
  refuseUnwanted(sandbox: PodSandbox): void {
    const reason = this.#unwanted.get(sandbox)
    if (reason !== undefined) throw new CniError('tryAgain', reason)
  }

  /** Of the same pod: nothing but uids tells it from another of its name, where a source says them. */
  #others({ containerId, namespace, pod, uid }: PodSandbox): readonly PodSandbox[] {
    const known = this.#options.known({ namespace, name: pod })
    const areTold = known === undefined || known.uid !== undefined
    const isNamesake = (one: PodSandbox): boolean => one.namespace === namespace && one.pod === pod && one.containerId !== containerId
    const isOther = (one: PodSandbox): boolean => areTold && uid !== undefined && one.uid !== undefined && uid !== one.uid
    return [...this.#all].filter((one) => isNamesake(one) && !isOther(one))
  }
}
