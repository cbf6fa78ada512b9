// SPDX-License-Identifier: Apache-2.0
/** Who gets an answer from a pod or node of a lab, now and in the end. Layer: test. */
import type { Lab } from '../../lab/lab.ts'
import { request } from '../../lab/traffic/traffic.ts'
import { waitFor } from '../../lab/wait.ts'

/** Of one question to each address, how many were answered. */
export async function answered(lab: Lab, from: string, to: readonly string[]): Promise<number> {
  const ask = (address: string) => request(lab, { from, to: { proto: 'tcp', address, port: 8080 }, timeoutMs: 700 })
  const results = await Promise.all(to.map(ask))
  return results.reduce((sum, { ok }) => sum + ok, 0)
}

/** Undefined: not in time. */
export async function until(timeoutMs: number, what: () => Promise<boolean>): Promise<true | undefined> {
  return await waitFor(async () => ((await what()) ? true : undefined), { timeoutMs })
}

/** One question that is not answered may have met a moment of change: silence lasts. */
export async function isSilent(lab: Lab, from: string, to: readonly string[]): Promise<boolean> {
  for (let round = 0; round < 4; round++) if ((await answered(lab, from, to)) > 0) return false
  return true
}
