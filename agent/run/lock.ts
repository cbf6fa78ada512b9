// SPDX-License-Identifier: Apache-2.0
/** One agent on a node: the one that has locked a file which only root can open. The kernel unlocks it when that
 * process ends. Layer: agent.
 *
 * Earlier agents knew each other by an abstract socket, which any process of the network namespace can take. It is
 * still taken where it is free, for those and for agents with another folder. Another process that has it does not
 * matter. */
import { closeSync, ftruncateSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { dirname } from 'node:path'
import { abstractOwner, lockFile } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { checkOwnFolder } from '#lib/base/os/own-folder.ts'

const SOCKET = 'netplane-agent'
/** What agents say of themselves begins with this. */
const AGENT = 'netplane-agent '
const PATIENCE_MS = 5000

export interface HeldLock extends Disposable {
  /** a process that has the socket and is no agent, by its user */
  readonly squatter: number | undefined
  /** Lets go, and leaves neither the file nor an empty folder. True when there was such a folder before. */
  remove(): boolean
}

export type Lock = { readonly kind: 'held'; readonly lock: HeldLock } | { readonly kind: 'taken'; readonly by: string }

export interface LockOptions {
  readonly path: string
  /** one line by which other agents know this one; begins with "netplane-agent " */
  readonly line: string
  /** of the abstract socket; another one in tests */
  readonly socket?: string
}

/** Takes the lock, or says what its holder says of itself. Throws ConfigError where others may take the file away. */
export async function takeLock({ path, line, socket = SOCKET }: LockOptions): Promise<Lock> {
  const made = mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
  checkOwnFolder(dirname(path))
  const file = lockFile(path)
  if (file === undefined) return { kind: 'taken', by: readFileSync(path, 'utf8').trim() || 'a process that is just starting' }
  ftruncateSync(file)
  writeSync(file, `${line}\n`, 0)
  const old = await takeSocket(socket, line)
  if (old.kind === 'agent') {
    closeSync(file)
    return { kind: 'taken', by: old.by }
  }
  const server = old.kind === 'ours' ? old.server : undefined
  let isHeld = true
  const free = (): void => {
    if (isHeld) closeSync(file)
    isHeld = false
    server?.close()
  }
  const remove = (): boolean => {
    rmSync(path, { force: true })
    free()
    return removeEmpty(dirname(path)) && made === undefined
  }
  return { kind: 'held', lock: { squatter: old.kind === 'other' ? old.uid : undefined, remove, [Symbol.dispose]: free } }
}

type OldLock =
  | { readonly kind: 'ours'; readonly server: Server }
  | { readonly kind: 'agent'; readonly by: string }
  | { readonly kind: 'other'; readonly uid: number | undefined }

async function takeSocket(name: string, line: string): Promise<OldLock> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    // a client that never hangs up does not hold us up
    socket.end(`${line}\n`, () => socket.destroy())
  })
  if (await listens(server, `\0${name}`)) {
    // holding the lock is no reason to keep the process alive
    return { kind: 'ours', server: server.unref() }
  }
  const uid = abstractOwner(name)
  // of ours: only root can be an agent
  const by = uid === process.geteuid?.() ? await ask(`\0${name}`) : ''
  return by.startsWith(AGENT) ? { kind: 'agent', by } : { kind: 'other', uid }
}

/** False: another process does. */
function listens(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (thrown) => {
      if (errorCode(thrown) === 'EADDRINUSE') resolve(false)
      else reject(thrown)
    })
    server.listen({ path }, () => {
      resolve(true)
    })
  })
}

function ask(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    let answer = ''
    const end = setTimeout(() => socket.destroy(), PATIENCE_MS)
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      answer += text
      if (answer.length > LONGEST) socket.destroy()
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(end)
      resolve(answer.trim())
    })
  })
}

const LONGEST = 1024

/** False when it is not empty, or is a mount. */
function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (thrown) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(errorCode(thrown) ?? '')) return false
    throw thrown
  }
}
