// SPDX-License-Identifier: Apache-2.0
/** Writes host endpoints as they are to be. Layer: controllers. */
import { errorText } from '#lib/base/errors.ts'
import { ApiError, isRefused } from '#lib/api/errors.ts'
import type { LockableApi } from '#lib/api/lockable.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Change } from './changes.ts'

export interface EndpointWriterOptions {
  readonly client: Pick<LockableApi, 'create' | 'update' | 'delete'>
  readonly log: Log
  /** false once another process may act */
  readonly mayAct: () => boolean
}

export interface Written {
  /** another client came first, or a write was refused: it is to be looked at again */
  readonly isAgain: boolean
  /** name and reason */
  readonly refused: readonly (readonly [name: string, reason: string])[]
}

const VERBS = { create: 'created', update: 'changed', delete: 'deleted' } as const

export class EndpointWriter {
  readonly #options: EndpointWriterOptions
  #writes = 0

  constructor(options: EndpointWriterOptions) {
    this.#options = options
  }

  /** How many were made, changed or deleted. */
  get writes(): number {
    return this.#writes
  }

  /** A refusal of one holds up no other. Rejects when the server cannot be asked. */
  async write(changes: readonly Change[], signal: AbortSignal): Promise<Written> {
    const refused: (readonly [string, string])[] = []
    let isAgain = false
    for (const { verb, object } of changes) {
      if (!this.#options.mayAct()) break
      const { name } = object.metadata
      try {
        await this.#one(verb, object, signal)
        this.#writes++
        this.#options.log.info({ name }, `host-endpoint.${VERBS[verb]}`)
      } catch (thrown) {
        if (!(thrown instanceof ApiError) || thrown.status >= 500) throw thrown
        isAgain = true
        // the watch tells what the other did
        if (isRefused(thrown, 'Conflict', 'NotFound', 'AlreadyExists')) continue
        refused.push([name, errorText(thrown)])
        this.#options.log.warn({ name, reason: errorText(thrown) }, 'host-endpoint.refused')
      }
    }
    return { isAgain, refused }
  }

  async #one(verb: Change['verb'], object: ApiObject, signal: AbortSignal): Promise<void> {
    const { client } = this.#options
    const { uid = '', resourceVersion = '' } = object.metadata
    if (verb === 'create') await client.create(object, { signal })
    else if (verb === 'update') await client.update(object, { signal })
    else await client.delete(namedOf(object), { signal, preconditions: { uid, resourceVersion } })
  }
}
