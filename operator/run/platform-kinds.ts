// SPDX-License-Identifier: Apache-2.0
/** Kinds of what the operator renders that only some servers have, asked for at its start. Layer: operator. */
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { isAbsent } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import type { Collection } from '#lib/api/resource.ts'
import type { Log } from '#lib/obs/log.ts'
import { SECURITY_CONSTRAINTS } from '#lib/render/security-constraints.ts'

export interface FindPlatformKinds {
  readonly client: Pick<ApiClient, 'request'>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

const AGAIN_MS = 2000

/** Tries until the server answers. */
export async function findPlatformKinds({ client, clock, log, signal }: FindPlatformKinds): Promise<readonly Collection[]> {
  const { apiVersion } = SECURITY_CONSTRAINTS
  for (;;)
    try {
      await client.request({ method: 'GET', path: `/apis/${apiVersion}`, signal })
      return [SECURITY_CONSTRAINTS]
    } catch (thrown) {
      if (isAbsent(thrown)) return []
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
      log.warn({ group: apiVersion, reason: errorText(thrown) }, 'discovery.failed')
      await clock.sleep(AGAIN_MS, signal)
    }
}
