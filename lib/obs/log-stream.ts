// SPDX-License-Identifier: Apache-2.0
/** Where log lines go. A pipe or socket takes each line at once while its reader reads. When the reader stands still,
 * lines wait in memory, and a full memory drops them: the log holds up no agent. Layer: lib/obs. */
import { fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import { destination } from 'pino'
import { systemClock } from '../base/clock.ts'

/** Disposing of it waits a second for the reader: what the reader has not read by then is lost. */
export interface LogStream extends AsyncDisposable {
  write(line: string): void
}

/** `fd` is not closed. `onGap`: the reader has read all that waited, and so many lines behind that were dropped. */
export function openLogStream(fd: number, onGap: (lines: number) => void): LogStream {
  const stats = fstatSync(fd)
  if (stats.isFIFO() || stats.isSocket()) return new PipeStream(new Socket({ fd, readable: false, writable: true }), onGap)
  // a file takes everything
  const file = destination({ dest: fd, sync: true })
  return { write: (line) => file.write(line), [Symbol.asyncDispose]: () => Promise.resolve() }
}

/** A few thousand lines. */
const MOST_BYTES = 1 << 20
const END_MS = 1000

class PipeStream implements LogStream {
  readonly #socket: Socket
  /** lines since the memory was full */
  #dropped = 0

  constructor(socket: Socket, onGap: (lines: number) => void) {
    this.#socket = socket
    // the reader has gone: the agent goes on without a log
    socket.on('error', () => undefined)
    socket.on('drain', () => {
      const lines = this.#dropped
      this.#dropped = 0
      if (lines > 0) onGap(lines)
    })
  }

  write(line: string): void {
    if (this.#socket.destroyed) return
    // all of a gap is in one place: at its end is its number
    if (this.#dropped > 0 || this.#socket.writableLength > MOST_BYTES) this.#dropped++
    else this.#socket.write(line)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const cancel = systemClock.after(END_MS, () => {
      resolve(undefined)
    })
    // after all that waits; or when the reader goes
    this.#socket.write('', resolve)
    await promise
    cancel()
    // a write that waits would keep the process; libuv closes no standard stream
    this.#socket.destroy()
  }
}
