// SPDX-License-Identifier: Apache-2.0
/** Flows from a time on, without an end: what is kept first, window by window, then what comes. Layer: flows. */
import type { Filter } from '../filter/filter.ts'
import { listFlows } from '../query/list.ts'
import { EVER, rowsOf } from '../query/range.ts'
import type { Ask, FlowRecord } from '../query/records.ts'
import { numberOf } from '../store/database.ts'
import type { FlowStore } from '../store/store.ts'
import type { Feed, Follower, Told } from './feed.ts'

export type Step =
  /** windows as they are kept, from the oldest on */
  | { readonly kind: 'kept'; readonly records: readonly FlowRecord[] }
  /** from here on all is told as it comes, behind this place of the feed */
  | { readonly kind: 'caught-up'; readonly place: number }
  | { readonly kind: 'came'; readonly told: readonly Told[] }
  /** so many were left out: of what is kept the oldest, of what comes what the client has not read in time */
  | { readonly kind: 'omitted'; readonly count: number }
  /** nothing came for a while */
  | { readonly kind: 'quiet' }

export interface FollowOptions {
  readonly store: FlowStore
  readonly feed: Feed
  readonly filter: Filter
  /** start of the oldest window; undefined: what comes from now on */
  readonly from: number | undefined
  /** place behind which to go on, where the feed remembers it */
  readonly after?: number | undefined
  /** of what is kept, at most so many, the newest windows */
  readonly most: number
  readonly quietMs: number
  readonly signal: AbortSignal
}

/** Each count is told once: what is added to a window that was told is told by itself. */
export async function* follow(options: FollowOptions): AsyncGenerator<Step, void> {
  const { feed, filter, from, after } = options
  const known = after === undefined ? undefined : feed.followerAfter(filter, after)
  using follower = known ?? feed.follower(filter)
  if (known === undefined && from !== undefined) yield* kept(options, from, follower)
  else {
    follower.begin()
    yield { kind: 'caught-up', place: known === undefined ? feed.place : (after ?? 0) }
  }
  yield* next(options, follower)
}

/** Behind its last step `follower` goes on: windows that are open are read at the moment in which it begins. */
async function* kept({ store, feed, filter, most, signal }: FollowOptions, from: number, follower: Follower): AsyncGenerator<Step, void> {
  const cut = (): { readonly place: number; readonly closed: number } => {
    follower.begin()
    return { place: feed.place, closed: store.closed }
  }
  const { there, open, place, closed } = await store.cut(cut, async (ask, at) => {
    const there = await countsOf(ask, from, filter)
    const open = new Map<number, readonly FlowRecord[]>()
    for (const { start } of there) if (start > at.closed) open.set(start, await recordsOf(ask, start, filter))
    return { there, open, ...at }
  })
  const told: number[] = []
  let left = most
  let omitted = 0
  for (const { start, keys } of there) {
    left -= keys
    if (left >= 0) told.push(start)
    else omitted += keys
  }
  if (omitted > 0) yield { kind: 'omitted', count: omitted }
  for (const start of told.reverse()) {
    if (signal.aborted) return
    const records = start > closed ? open.get(start) : await recordsOf((asked) => store.read(asked), start, filter)
    yield { kind: 'kept', records: records ?? [] }
  }
  yield { kind: 'caught-up', place }
}

async function* next({ quietMs, signal }: FollowOptions, follower: Follower): AsyncGenerator<Step, void> {
  const isOver = (): boolean => signal.aborted
  while (!isOver()) {
    const { told, missed } = await follower.next(quietMs, signal)
    if (told.length > 0) yield { kind: 'came', told }
    if (missed > 0) yield { kind: 'omitted', count: missed }
    if (told.length + missed === 0 && !isOver()) yield { kind: 'quiet' }
  }
}

/** Windows that have any, the newest first. */
async function countsOf(ask: Ask, from: number, filter: Filter): Promise<readonly { readonly start: number; readonly keys: number }[]> {
  const rows = rowsOf({ ...EVER, first: from }, filter)
  const found = await ask({
    text: `SELECT start, count(DISTINCT key) FROM ${rows.text} GROUP BY start ORDER BY start DESC`,
    values: rows.values,
  })
  return found.map(([start, keys]) => ({ start: numberOf(start), keys: numberOf(keys) }))
}

async function recordsOf(ask: Ask, start: number, filter: Filter): Promise<readonly FlowRecord[]> {
  const page = { index: 0, size: 0 }
  return (await listFlows(ask, { range: { first: start, last: start }, filter, page, sort: 'time' })).items
}
