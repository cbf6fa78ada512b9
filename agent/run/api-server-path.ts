// SPDX-License-Identifier: Apache-2.0
/** The agent's own way to the API server: no service is on it. Layer: agent. */
import { firstFew } from '#lib/base/text/first-few.ts'
import { formatAddr, hostPort } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Conflict } from '../compile/compile.ts'
import { listId, listIdBefore } from '../compile/services/list-ids.ts'
import { clearApiServerPath } from '../dataplane/programs/clear-api-server-path.ts'
import type { Pins } from '../dataplane/pins.ts'
import type { ServerPlace } from './sources.ts'

/** Condition: no Service asks for an address and port where the API server is asked. */
export const API_SERVER_PATH = 'api.way'

export interface ApiServerPathOptions {
  readonly pins: Pins
  readonly health: Health
  readonly log: Log
}

/** Of default/kubernetes, whose port has always had this name. An agent that comes after one with other ids must not
 * close its own way. */
export const SERVERS = new Set(
  (['IPv4', 'IPv6'] as const).flatMap((family) =>
    [false, true].flatMap((local) => {
      const ref = { namespace: 'default', name: 'kubernetes', port: 'https', family, local }
      return [listId(ref), listIdBefore(ref)]
    }),
  ),
)

export class ApiServerPath {
  readonly #options: ApiServerPathOptions

  constructor(options: ApiServerPathOptions) {
    this.#options = options
    options.health.expect(API_SERVER_PATH, 'none')
    options.health.pass(API_SERVER_PATH)
  }

  /** Before each connection: what an agent before has left there, or what came to be in the way when the server's
   * name got another address. */
  clear(place: ServerPlace): void {
    const { pins, log } = this.#options
    const server = hostPort(formatAddr(place.addr), place.port)
    try {
      const cleared = clearApiServerPath({ pins, ...place, servers: SERVERS })
      if (cleared.length > 0) log.warn({ server, cleared }, 'api-server-path.cleared')
    } catch (thrown) {
      log.error({ error: thrown, server }, 'api-server-path.check-failed')
    }
  }

  /** All that is refused for being there. */
  note(conflicts: readonly Conflict[]): void {
    const refused = conflicts.filter(({ atServer }) => atServer === true).map(({ rejected }) => rejectedText(rejected))
    if (refused.length === 0) this.#options.health.pass(API_SERVER_PATH)
    else this.#options.health.fail(API_SERVER_PATH, firstFew(refused))
  }
}
