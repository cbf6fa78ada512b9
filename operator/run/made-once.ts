// SPDX-License-Identifier: Apache-2.0
/** What is made once and is the administrator's from then on: pools, and settings that the platform asks for.
 * Layer: operator. */
import type { ApiClient } from '#lib/api/client.ts'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Log } from '#lib/obs/log.ts'
import { FELIX_CONFIGURATION, missingSettings } from '#lib/render/felix-settings.ts'
import { textOf, troubleOf, type Trouble } from '../objects/owned-objects.ts'
import { poolsToMake } from '../objects/pools.ts'
import type { ClusterView } from './cluster-view.ts'
import type { Asked } from './desired.ts'

export interface MadeOnceOptions {
  readonly client: ApiClient
  readonly view: Pick<ClusterView, 'lock' | 'pools' | 'felixConfiguration'>
  readonly log: Log
}

interface Write {
  readonly object: ApiObject
  readonly run: () => Promise<unknown>
}

export class MadeOnce {
  readonly #of: MadeOnceOptions
  #troubles: readonly Trouble[] = []

  constructor(of: MadeOnceOptions) {
    this.#of = of
  }

  /** Of the last time. */
  get troubles(): readonly Trouble[] {
    return this.#troubles
  }

  /** What is not there yet, as far as the datastore is not locked. */
  async make(asked: Asked, signal: AbortSignal): Promise<void> {
    const { client, view, log } = this.#of
    const api = lockable(client, () => view.lock)
    const pools = poolsToMake(asked.pools, view.pools.objects.values())
    const writes = [
      ...pools.map((pool) => ({ object: pool, run: () => api.create(pool, { signal }) })),
      ...this.#settings(asked, api, signal),
    ]
    const troubles: Trouble[] = []
    for (const { object, run } of writes) {
      const trouble = await troubleOf(textOf(object), async () => {
        await run()
        log.info({ object: textOf(object) }, 'object.made-once')
        return undefined
      })
      if (trouble !== undefined) troubles.push(trouble)
    }
    this.#troubles = troubles
  }

  #settings({ computed }: Asked, api: LockableApi, signal: AbortSignal): readonly Write[] {
    const found = this.#of.view.felixConfiguration
    const spec = missingSettings(computed.platform, found)
    if (Object.keys(spec).length === 0) return []
    const { apiVersion, kind, name } = FELIX_CONFIGURATION
    const object = asApiObject({ apiVersion, kind, metadata: { name }, spec })
    if (found === undefined) return [{ object, run: () => api.create(object, { signal }) }]
    // of the object as it was seen: what another sets meanwhile stays
    const patch = { metadata: { resourceVersion: found.metadata.resourceVersion }, spec }
    return [{ object, run: () => api.patch(FELIX_CONFIGURATION, patch, { type: 'merge', signal }) }]
  }
}
