// SPDX-License-Identifier: Apache-2.0
/** Whether controllers run, which then write what agents write where there are none. Layer: agent/status. */
import { isObject } from '#lib/base/object.ts'
import { isAbsent } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { TIMEOUT_MS, type StatusApi } from './status-api.ts'

export class ControllersLease {
  readonly #api: Pick<StatusApi, 'get'>
  readonly #named: Named
  #seen: string | undefined

  constructor(api: Pick<StatusApi, 'get'>, namespace: string) {
    this.#api = api
    this.#named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: CONTROLLERS_NAME }
  }

  /** It has a holder, and has changed since the look before: times in it are another machine's. A holder renews it
   * every few seconds, so looks are to be further apart. */
  async isHeld(signal: AbortSignal): Promise<boolean> {
    const found = await this.#found(signal)
    const version = found?.metadata.resourceVersion
    const isNews = version !== this.#seen
    this.#seen = version
    const holder = isObject(found?.['spec']) ? found['spec']['holderIdentity'] : undefined
    return isNews && typeof holder === 'string' && holder !== ''
  }

  /** An account of before there were controllers may not ask, and has none. */
  async #found(signal: AbortSignal): Promise<ApiObject | undefined> {
    try {
      return await this.#api.get(this.#named, { signal, timeoutMs: TIMEOUT_MS })
    } catch (thrown) {
      if (isAbsent(thrown) || isRefused(thrown, 'Forbidden')) return undefined
      throw thrown
    }
  }
}
