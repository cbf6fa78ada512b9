// SPDX-License-Identifier: Apache-2.0
/** Pages that every program of ours serves: health, metrics. Layer: lib/obs. */
import type { Health } from './health.ts'
import { PageServer, type Page, type Pages } from './http.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

export function healthPages(health: Health): Pages {
  return { '/liveness': () => verdict(health, 'live'), '/readiness': () => verdict(health, 'ready') }
}

/** `make` is called when the first request for metrics can come. */
export async function metricsPages(make: () => Promise<Metrics>): Promise<Pages> {
  const metrics = await make()
  return { '/metrics': async () => ({ status: 200, type: metrics.contentType, body: await metrics.text() }) }
}

export interface Place {
  /** undefined: every address */
  readonly host: string | undefined
  readonly port: number
  readonly pages: Pages
}

/** Says in the log which page has failed. */
export function pageServer(place: Place, log: Log): PageServer {
  return new PageServer({
    ...place,
    onError: (path, error) => {
      log.error({ path, error }, 'page.failed')
    },
  })
}

function verdict(health: Health, what: 'ready' | 'live'): Page {
  const report = health.report()
  return { status: report[what] ? 200 : 503, type: 'application/json', body: `${JSON.stringify(report)}\n` }
}
