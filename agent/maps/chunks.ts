// SPDX-License-Identifier: Apache-2.0
/** A map read part by part, so that neither its reader nor any other task waits for the whole. Layer: agent/maps. */

/** Entries back to back. */
export interface Chunk {
  readonly keys: Buffer
  readonly values: Buffer
  readonly count: number
}

/** What it needs of a map; `BpfMap` has it. */
export interface ChunkedMap {
  info(): { readonly maxEntries: number }
  readChunk(cursor: Uint8Array | undefined, room: number): Promise<Chunk & { readonly next: Buffer | undefined }>
}

/** Without batches (before 5.6) a walk starts again from the beginning when its entry was deleted meanwhile. It may do
 * so this often. */
const MOST_ROUNDS = 4

/** Every entry that is there all the time, at least once; in hashes with batches none twice. */
export async function* chunksOf(map: ChunkedMap, room: number): AsyncGenerator<Chunk> {
  const most = MOST_ROUNDS * map.info().maxEntries + room
  let cursor: Buffer | undefined
  let read = 0
  do {
    const chunk = await map.readChunk(cursor, room)
    yield chunk
    read += Math.max(1, chunk.count)
    cursor = chunk.next
  } while (cursor !== undefined && read <= most)
}
