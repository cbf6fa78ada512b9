// SPDX-License-Identifier: Apache-2.0
/** Memory that the runtime would keep without need. Layer: agent. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Node keeps what a start has grown for as long as it likes: 20 MB with no services, at 10,000 of them 280 MB
 * instead of 150. A full collection that also lets go of pages takes 50 ms and 0.2 to 0.5 s there, during which
 * nothing else is done. Returns the resident bytes before and after; undefined when this runtime has no such thing. */
export function releaseHeap(): { readonly before: number; readonly after: number } | undefined {
  const before = process.memoryUsage.rss()
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (!isCollector(collect)) return undefined
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  return { before, after: process.memoryUsage.rss() }
}

/** As large as steady changes make good use of. */
const YOUNG_BYTES = 16 << 20

/** The room for new objects doubles while objects live through collections, up to 128 MB, and steady changes keep it
 * there: of 16 MB of objects that live an agent then has 290 MB resident. To be asked often; from 16 MB on the room
 * grows no more, which costs no time that can be seen. */
export function limitYoung(): void {
  const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')
  if (young !== undefined) setFlagsFromString(`--semi-space-growth-factor=${young.space_size < YOUNG_BYTES ? 2 : 1}`)
}

function isCollector(value: unknown): value is (how: Readonly<Record<string, string>>) => void {
  return typeof value === 'function'
}
