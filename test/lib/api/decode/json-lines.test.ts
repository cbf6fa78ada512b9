// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { jsonLines } from '#lib/api/decode/json-lines.ts'
import { UnreachableError, UnreadableError } from '#lib/api/errors.ts'

async function read(...chunks: readonly string[]): Promise<unknown[][]> {
  const batches: unknown[][] = []
  for await (const batch of jsonLines(bodyOf(chunks))) batches.push([...batch])
  return batches
}

// eslint-disable-next-line @typescript-eslint/require-await
async function* bodyOf(chunks: readonly string[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

test('lines come as they are whole, several at a time', async () => {
  expect(await read('{"a":1}\n{"a":', '2', '}\n{"a":3}\n')).toEqual([[{ a: 1 }], [{ a: 2 }, { a: 3 }]])
})

test('a line that is no JSON is unreadable, one without an end is a connection that was lost', async () => {
  await expect(read('{"a":}\n')).rejects.toThrow(UnreadableError)
  await expect(read('{"a":1}\n{"a"')).rejects.toThrow(UnreachableError)
})

test.each([
  { what: 'Others have a turn before something is done with a long line.', bytes: 100_000, seen: ['other', 'line'] },
  { what: 'Others have no turn for a short line.', bytes: 10, seen: ['line'] },
])('$what', async ({ bytes, seen: expected }) => {
  const seen: string[] = []
  setImmediate(() => seen.push('other'))
  for await (const _ of jsonLines(bodyOf([`${JSON.stringify('x'.repeat(bytes))}\n`]))) seen.push('line')
  expect(seen).toEqual(expected)
})
