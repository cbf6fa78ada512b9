// SPDX-License-Identifier: Apache-2.0
/** Many files, read beside what is made of them. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileRead, Stamp } from '#lib/manifests/read-file.ts'
import { readFiles } from '#lib/manifests/read-files.ts'

const MANY = 5000

let root = ''
let threads: Worker[] = []
const noteThread = (thread: Worker): void => {
  threads.push(thread)
}
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'np-files-'))
  threads = []
  process.on('worker', noteThread)
})
afterEach(() => {
  process.off('worker', noteThread)
  rmSync(root, { recursive: true, force: true })
})

/** Files that say their number. */
function numbered(count: number): readonly string[] {
  const names = Array.from({ length: count }, (_, at) => `${String(at).padStart(5, '0')}.json`)
  for (const [at, name] of names.entries()) writeFileSync(join(root, name), String(at))
  return names
}

/** `during` is called when the first part is there. */
async function readAll(names: readonly string[], how: { during?: () => unknown; known?: ReadonlyMap<string, Stamp> } = {}) {
  const found: (readonly [string, FileRead])[] = []
  for await (const reads of readFiles({ root, files: names.map((file) => ({ file, known: how.known?.get(file) })) })) {
    if (found.length === 0) await how.during?.()
    found.push(...reads)
  }
  return found
}

function textOf(read: FileRead | undefined): string | undefined {
  return read?.kind === 'read' ? read.text : read?.kind
}

function expectAll(found: readonly (readonly [string, FileRead])[], names: readonly string[]): void {
  expect(found.map(([file]) => file)).toEqual(names)
  expect(found.map(([, read]) => textOf(read))).toEqual(names.map((_, at) => String(at)))
}

test.each([
  [0, 0],
  [1, 0],
  [600, 0],
  [MANY, 1],
])('%i files come in their order, read by %i threads', async (count, expected) => {
  const names = numbered(count)
  expectAll(await readAll(names), names)
  expect(threads).toHaveLength(expected)
})

test('files that are known to be as they are take no thread', async () => {
  const names = numbered(MANY)
  const known = new Map((await readAll(names)).flatMap(([file, read]) => (read.kind === 'read' ? [[file, read.stamp]] : [])))
  const again = await readAll(names, { known })
  expect(new Set(again.map(([, read]) => read.kind))).toEqual(new Set(['unchanged']))
  expect(threads).toHaveLength(1)
})

test('others get a turn between parts', async () => {
  const said: string[] = []
  for await (const reads of readFiles({ root, files: numbered(600).map((file) => ({ file, known: undefined })) })) {
    said.push(`part of ${reads.size}`)
    setImmediate(() => said.push('turn'))
  }
  expect(said.filter((what) => what !== 'turn')).toEqual(['part of 256', 'part of 256', 'part of 88'])
  expect(said.indexOf('turn')).toBeLessThan(said.indexOf('part of 88'))
  expect(said).toContain('turn')
})

test('a part has no more than is good to hold at a time', async () => {
  const large = '"' + 'x'.repeat(3 << 20) + '"'
  for (const name of ['a.json', 'b.json', 'c.json']) writeFileSync(join(root, name), large)
  const parts: number[] = []
  for await (const reads of readFiles({ root, files: ['a.json', 'b.json', 'c.json'].map((file) => ({ file, known: undefined })) }))
    parts.push(reads.size)
  expect(parts).toEqual([2, 1])
})

describe('while many files are read', () => {
  test('one goes, one becomes a directory, one is written again', async () => {
    const names = numbered(MANY)
    const found = new Map(
      await readAll(names, {
        during: () => {
          for (const name of ['04000.json', '04001.json']) rmSync(join(root, name))
          mkdirSync(join(root, '04001.json'))
          writeFileSync(join(root, '04002.json'), '"new"')
        },
      }),
    )
    expect(['03999.json', '04000.json', '04001.json', '04002.json'].map((name) => textOf(found.get(name)))).toEqual([
      '3999',
      'gone',
      'directory',
      '"new"',
    ])
  })

  test('the thread that reads them may end, with a part in its hands', async () => {
    const asked: unknown[] = []
    const up = Promise.withResolvers<undefined>()
    process.once('worker', (thread) => {
      thread.once('online', () => up.resolve(undefined))
      thread.postMessage = (part: unknown) => {
        asked.push(part)
        void thread.terminate()
      }
    })
    const names = numbered(MANY)
    expectAll(await readAll(names, { during: () => up.promise }), names)
    expect(asked).toHaveLength(1)
  })

  test('the rest may not be wanted any more: no thread stays', async () => {
    for await (const reads of readFiles({ root, files: numbered(MANY).map((file) => ({ file, known: undefined })) }))
      if (reads.size > 0) break
    expect(threads.map(({ threadId }) => threadId)).toEqual([-1])
  })
})
