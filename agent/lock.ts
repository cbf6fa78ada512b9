// SPDX-License-Identifier: Apache-2.0
/** One agent in a network namespace: whoever holds the abstract socket is it, and the kernel lets go of it when that process ends. Layer: agent. */
import { connect, createServer, type Server } from 'node:net'
import { errorCode } from '#lib/base/errors.ts'

export const LOCK_NAME = '\0netplane-agent'
const PATIENCE_MS = 2000

export type Lock = { readonly kind: 'held'; readonly lock: AsyncDisposable } | { readonly kind: 'taken'; readonly by: string }

export interface LockOptions {
  /** one line that tells others who we are */
  readonly line: string
  /** LOCK_NAME; another one in tests */
  readonly name?: string
}

/** Takes the lock, or says what its holder answers. */
export async function takeLock(options: LockOptions): Promise<Lock> {
  const name = options.name ?? LOCK_NAME
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    // whoever never hangs up does not hold us up
    socket.end(`${options.line}\n`, () => socket.destroy())
  })
  try {
    await listen(server, name)
  } catch (thrown) {
    if (errorCode(thrown) !== 'EADDRINUSE') throw thrown
    return { kind: 'taken', by: await askHolder(name) }
  }
  // holding the lock is no reason to keep the process alive
  server.unref()
  return {
    kind: 'held',
    lock: {
      [Symbol.asyncDispose]: () =>
        new Promise((resolve) =>
          server.close(() => {
            resolve()
          }),
        ),
    },
  }
}

/** What the holder says of itself; undefined when there is none. */
export async function lockHolder(name: string = LOCK_NAME): Promise<string | undefined> {
  const answer = await ask(name)
  return answer === 'nobody' ? undefined : answer
}

async function askHolder(name: string): Promise<string> {
  const answer = await ask(name)
  return answer === 'nobody' ? 'another process that has just ended' : answer
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path }, resolve)
  })
}

function ask(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    let answer = ''
    socket.setEncoding('utf8')
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.on('data', (text: string) => {
      answer += text
    })
    socket.on('error', (thrown) => {
      if (errorCode(thrown) === 'ECONNREFUSED') resolve('nobody')
    })
    socket.on('close', () => {
      resolve(answer.trim() === '' ? 'a process that does not answer' : answer.trim())
    })
  })
}
