// SPDX-License-Identifier: Apache-2.0
/** Takes the startup taint off this node's Node once the agent serves, so that pods may come. Layer: agent/status.
 *
 * The agent never sets it: an agent that stops, fails or starts again keeps no pod away. */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import { STARTUP_TAINT } from '#lib/kube/objects/startup-taint.ts'
import type { Due, Subject } from './outbox.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** An operation of a JSON patch. */
export type PatchStep =
  { readonly op: 'test'; readonly path: string; readonly value: object } | { readonly op: 'remove'; readonly path: string }

/** Takes the taint away, whatever its effect, and nothing else: another writer's change of the list makes it fail.
 * Undefined: the Node does not have it. */
export function untaint(node: ApiObject): readonly PatchStep[] | undefined {
  const steps = objectsIn(fieldsOf(node['spec'])['taints']).flatMap((taint, at): readonly PatchStep[] => {
    const path = `/spec/taints/${at}`
    return taint['key'] === STARTUP_TAINT
      ? [
          { op: 'remove', path },
          { op: 'test', path, value: taint },
        ]
      : []
  })
  // from the end: a step changes no place of a later one
  return steps.length === 0 ? undefined : steps.toReversed()
}

export interface StartupTaintOptions {
  readonly api: StatusApi
  readonly node: string
  /** the source has this node's Node with the taint */
  readonly isTainted: () => boolean
  /** all is in the kernel that the node is to do, and runtimes call our plugin where it is to be called */
  readonly serves: () => boolean
}

export class StartupTaint implements Subject {
  readonly name = 'taint'
  readonly #options: StartupTaintOptions

  constructor(options: StartupTaintOptions) {
    this.#options = options
  }

  due(): readonly Due[] {
    const { node, isTainted, serves } = this.#options
    return isTainted() && serves() ? [{ key: node, write: (signal) => this.#write(signal) }] : []
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    const named = { apiVersion: 'v1', kind: 'Node', name: node }
    const object = await lookUp(api, named, signal)
    const steps = object && untaint(object)
    // the source hears of it later than the server
    if (steps !== undefined) await api.patch(named, steps, { type: 'json', signal, timeoutMs: TIMEOUT_MS })
  }
}
