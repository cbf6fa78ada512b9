// SPDX-License-Identifier: Apache-2.0
/** Says which host endpoints of this node protect nothing, because no device is theirs: log and condition.
 * Layer: agent/dataplane. */
import { ConditionReporter, reasonsText } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'

/** Condition: each host endpoint of this node is some device's. */
export const HOST_ENDPOINTS = 'policy.host-endpoints'

/** By ref, why no device is its own. */
export function unmatchedHostEndpoints({ log, health }: { readonly log: Log; readonly health: Health }): ConditionReporter<string> {
  health.expect(HOST_ENDPOINTS, 'none')
  return new ConditionReporter<string>({
    health,
    condition: HOST_ENDPOINTS,
    reason: (all) => reasonsText(all, (reason) => reason),
    isSame: (before, now) => before === now,
    found: (endpoint, reason) => log.warn({ endpoint, reason }, 'host-endpoint.unmatched'),
    gone: (endpoint) => log.info({ endpoint }, 'host-endpoint.matched'),
  })
}
