// SPDX-License-Identifier: Apache-2.0
/** A log whose reader stands still: what the process does meanwhile, and what the reader finds. Layer: test. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

type Output = 'socket' | 'pipe'

class Writer implements Disposable {
  readonly #child: ChildProcess
  /** not read before a test reads it */
  readonly output: Readable
  readonly exit: Promise<readonly unknown[]>

  constructor(kind: Output, lines: number) {
    const command = [...nodeCommand(join(packageRoot(), 'test/lib/obs/log-writer.ts')).slice(1), String(lines)]
    const pipe = kind === 'pipe' ? openPipe() : undefined
    this.#child = spawn(process.execPath, command, { stdio: ['pipe', pipe?.writer ?? 'pipe', 'pipe'] })
    this.exit = once(this.#child, 'exit')
    if (pipe !== undefined) closeSync(pipe.writer)
    const output = pipe === undefined ? this.#child.stdout : createReadStream('', { fd: pipe.reader })
    if (output === null) throw new Error('has no output')
    this.output = output
  }

  /** It has logged all of its lines. */
  async through(): Promise<void> {
    if (this.#child.stderr !== null) await once(this.#child.stderr, 'data')
  }

  /** It logs its last line, and ends. */
  release(): void {
    this.#child.stdin?.end('go')
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }
}

/** A pipe of the kernel: those that node makes are sockets. */
function openPipe(): { readonly reader: number; readonly writer: number } {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-log-'))
  const path = join(folder, 'log')
  try {
    execFileSync('mkfifo', [path])
    // one end alone waits for the other
    const both = openSync(path, 'r+')
    const ends = { reader: openSync(path, 'r'), writer: openSync(path, 'w') }
    closeSync(both)
    return ends
  } finally {
    rmSync(folder, { recursive: true })
  }
}

interface Line {
  readonly event: string
  readonly line?: number
  readonly lines?: number
}

/** Until it ends. */
async function linesOf(output: Readable, onLine: (line: Line) => void = () => undefined): Promise<readonly Line[]> {
  const lines: Line[] = []
  for await (const text of createInterface(output)) {
    const line = JSON.parse(text) as Line
    lines.push(line)
    onLine(line)
  }
  return lines
}

const MANY = 20_000

test.each<Output>(['socket', 'pipe'])('a reader of a %s that comes back finds one gap, and how many lines are missing', async (kind) => {
  using writer = new Writer(kind, MANY)
  await writer.through()
  const lines = await linesOf(writer.output, ({ event }) => {
    if (event !== 'filled') writer.release()
  })
  const filled = lines.filter(({ event }) => event === 'filled').map(({ line }) => line)
  expect(filled).toEqual(filled.map((_, at) => at))
  expect(lines.slice(filled.length)).toMatchObject([{ event: 'log.lines-dropped', lines: MANY - filled.length }, { event: 'ended' }])
})

test.each<Output>(['socket', 'pipe'])('a process whose log is not read ends all the same, from a %s', async (kind) => {
  using writer = new Writer(kind, MANY)
  await writer.through()
  writer.release()
  expect(await writer.exit).toEqual([0, null])
})

test.each<Output>(['socket', 'pipe'])('a process whose reader has gone goes on, from a %s', async (kind) => {
  using writer = new Writer(kind, MANY)
  writer.output.destroy()
  await writer.through()
  writer.release()
  expect(await writer.exit).toEqual([0, null])
})

test('a reader that reads misses nothing', async () => {
  using writer = new Writer('pipe', 1000)
  writer.release()
  expect((await linesOf(writer.output)).map(({ event }) => event)).toEqual([...Array.from({ length: 1000 }, () => 'filled'), 'ended'])
})
