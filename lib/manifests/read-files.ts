// SPDX-License-Identifier: Apache-2.0
/** Reads files part by part: many of them in a thread, beside what is made of those before. Layer: lib/manifests. */
import { extname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { packageRoot } from '../base/os/package.ts'
import type { FileRead } from './read-file.ts'
import { MOST_FILES, readPart, type FilesToRead } from './read-part.ts'

/** New files from which on a thread is worth its start: that takes as long as reading 2,000 here. */
const MANY = 2000

/** What became of the files, in their order. Others get a turn between parts. */
export async function* readFiles({ root, files }: FilesToRead): AsyncGenerator<ReadonlyMap<string, FileRead>> {
  const fresh = files.filter(({ known }) => known === undefined).length
  await using thread = fresh < MANY ? undefined : new ReaderThread()
  const readFrom = async (at: number): Promise<ReadonlyMap<string, FileRead>> => {
    const part = { root, files: files.slice(at, at + MOST_FILES) }
    // asked for at once, so that it is read while the one before is taken in
    if (thread?.isUp === true) return await thread.read(part)
    if (at > 0) await setImmediate()
    return readPart(part)
  }
  let coming = readFrom(0)
  for (let at = 0; at < files.length;) {
    const reads = await coming
    at += reads.size
    if (at < files.length) coming = readFrom(at)
    yield reads
  }
}

/** Before it is up, and once it has failed, files are read here. */
class ReaderThread implements AsyncDisposable {
  isUp = false
  readonly #worker: Worker
  #answer: (reads: ReadonlyMap<string, FileRead> | undefined) => void = () => undefined

  constructor() {
    this.#worker = new Worker(threadFile(), { resourceLimits: { maxYoungGenerationSizeMb: 2 } })
    this.#worker.once('online', () => {
      this.isUp = true
    })
    this.#worker.on('message', (reads: ReadonlyMap<string, FileRead>) => {
      this.#answer(reads)
    })
    this.#worker.once('error', () => undefined) // its end follows
    this.#worker.once('exit', () => {
      this.isUp = false
      this.#answer(undefined)
    })
  }

  /** One part at a time. */
  async read(part: FilesToRead): Promise<ReadonlyMap<string, FileRead>> {
    const reads = await new Promise<ReadonlyMap<string, FileRead> | undefined>((resolve) => {
      this.#answer = resolve
      this.#worker.postMessage(part)
    })
    return reads ?? readPart(part)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

/** Built when we are, also where we are bundled; source when we are. */
function threadFile(): string {
  const extension = extname(fileURLToPath(import.meta.url))
  return join(packageRoot(), extension === '.js' ? 'dist' : '', `lib/manifests/reader-thread${extension}`)
}
