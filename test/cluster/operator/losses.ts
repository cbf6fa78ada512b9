// SPDX-License-Identifier: Apache-2.0
/** Traffic by every way, and a text of what it lost, which is empty. Layer: test. */
import { accountsText, ConstantTraffic, withLosses, type Account } from '../../../lab/traffic/accounts.ts'
import type { World } from './ways.ts'

/** A second. Of a stream, and of new connections to each destination. */
const RATES = { stream: Number(process.env['STREAM'] ?? 20), fresh: Number(process.env['FRESH'] ?? 10) }

export async function startTraffic({ places, ways }: World): Promise<ConstantTraffic> {
  return await ConstantTraffic.start(places, ways, RATES)
}

/** Beside other traffic, which has new connections enough: two of its size are more than two processors carry. */
export async function startStreams({ places, ways }: World): Promise<ConstantTraffic> {
  return await ConstantTraffic.start(places, ways, { ...RATES, fresh: 0 })
}

/** Prints all accounts; a line each of clients that lost something. */
export function lossesText(when: string, accounts: readonly Account[]): string {
  console.log(`traffic ${when}:\n${accountsText(accounts)}`)
  const lines = withLosses(accounts).flatMap(({ kind, lost, refused, reset, failures }) => [
    `${kind}: ${lost} lost, ${refused} refused, ${reset} reset`,
    ...failures.map(
      ({ between, codes, at }) => `  ${between} ${codes.join()} at ${at.map((time) => new Date(time).toISOString()).join(' to ')}`,
    ),
  ])
  return lines.join('\n')
}
