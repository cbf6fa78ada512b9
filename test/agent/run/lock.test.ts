// SPDX-License-Identifier: Apache-2.0
/** One agent on a node: which process may hold its lock, which hears of which, and what is left. Layer: test. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { takeLock, type HeldLock, type Lock } from '#agent/run/lock.ts'

const socket = `netplane-test-${process.pid}`
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

let folder: string
let path: string
const children: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-lock-'))
  path = join(folder, 'run', 'agent.lock')
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

const take = (line: string, of: { readonly path?: string } = {}): Promise<Lock> => takeLock({ path, line, socket, ...of })

async function held(line: string, of: { readonly path?: string } = {}): Promise<HeldLock> {
  const lock = await take(line, of)
  if (lock.kind !== 'held') throw new Error(`taken by ${lock.by}`)
  return lock.lock
}

/** A process that runs this once it says so. It becomes the user by itself: that one may not reach the program, which
 * lies in this folder. */
async function child(script: string, uid = 0): Promise<ChildProcess> {
  const become = uid === 0 ? '' : `process.setgroups([]); process.setuid(${uid}); `
  const started = spawn(process.execPath, ['-e', `${become}${script}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(started)
  await once(started.stdout, 'data')
  return started
}

/** Listens at the socket of agents of before, and says this line. */
const squatter = (line: string): string =>
  `require('node:net').createServer((peer) => peer.on('error', () => {}).end(${JSON.stringify(line)})).listen({ path: '\\0${socket}' }, () => console.log('ready'))`

test('one agent has the lock; another learns which one, and gets the lock afterwards', async () => {
  const first = await held('netplane-agent of node n1, pid 1')
  expect(await take('netplane-agent of node n1, pid 2')).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 1' })
  const idle = connect({ path: `\0${socket}`, allowHalfOpen: true }).resume()
  await once(idle, 'end')
  first[Symbol.dispose]()
  const second = await held('netplane-agent of node n1, pid 2')
  expect(await take('netplane-agent of node n1, pid 3')).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 2' })
  second[Symbol.dispose]()
  idle.destroy()
})

test('the lock of a process that was killed is free', async () => {
  const script = `
    const { lockFile } = require(${JSON.stringify(join(process.cwd(), 'build/Release/netplane_native.node'))})
    console.log(lockFile(${JSON.stringify(join(folder, 'agent.lock'))}))
    setInterval(() => undefined, 1000)`
  const holder = await child(script)
  const there = { path: join(folder, 'agent.lock') }
  expect(await take('netplane-agent of node n1, pid 2', there)).toEqual({ kind: 'taken', by: 'a process that is just starting' })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  ;(await held('netplane-agent of node n1, pid 2', there))[Symbol.dispose]()
})

test('an agent learns by the socket of one with another folder, and of one without a lock file', async () => {
  const first = await held('netplane-agent of node n1, pid 1')
  const elsewhere = { path: join(folder, 'elsewhere', 'agent.lock') }
  expect(await take('netplane-agent of node n1, pid 2', elsewhere)).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 1' })
  first[Symbol.dispose]()
  const before = createServer((peer) => peer.on('error', () => undefined).end('netplane-agent of node n1, pid 3\n')).listen({
    path: `\0${socket}`,
  })
  await once(before, 'listening')
  expect(await take('netplane-agent of node n1, pid 4')).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 3' })
  before.close()
  ;(await held('netplane-agent of node n1, pid 4'))[Symbol.dispose]()
})

test.skipIf(!isRoot).each([
  ['another user that claims to be an agent', 'netplane-agent of node n1, pid 1\n', NOBODY],
  ['another user that says nothing', '', NOBODY],
  ['a process of root that is no agent', 'hello\n', 0],
])('%s keeps no agent out by taking the socket', async (_, line, uid) => {
  await child(squatter(line), uid)
  const lock = await held('netplane-agent of node n1, pid 2')
  expect(lock.squatter).toBe(uid)
  expect(await take('netplane-agent of node n1, pid 3')).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 2' })
  lock[Symbol.dispose]()
})

test.skipIf(!isRoot)('another user can neither lock the file nor take it away', async () => {
  spawnSync('chmod', ['755', folder])
  const mask = process.umask(0)
  const lock = await held('netplane-agent of node n1, pid 1')
  process.umask(mask)
  expect([statSync(path).mode & 0o777, statSync(join(folder, 'run')).mode & 0o777]).toEqual([0o600, 0o755])
  lock[Symbol.dispose]()
  const as = (...command: readonly string[]): number | null =>
    spawnSync('setpriv', ['--reuid', '65534', '--clear-groups', ...command]).status
  expect([as('true'), as('flock', path, 'true'), as('rm', '-f', path)]).toEqual([0, 66, 1])
})

test.skipIf(!isRoot).each([
  ['that others may open', 0o666, 0],
  ['of another user', 0o600, NOBODY],
])('a file %s is no lock, whichever process has locked it', async (_, mode, uid) => {
  spawnSync('chmod', ['755', folder])
  mkdirSync(dirname(path))
  writeFileSync(path, '')
  chmodSync(path, mode)
  chownSync(path, uid, 0)
  const holder = spawn('setpriv', [
    '--reuid',
    String(NOBODY),
    '--clear-groups',
    'flock',
    '--no-fork',
    path,
    'sh',
    '-c',
    'echo ready; exec sleep 60',
  ])
  children.push(holder)
  await once(holder.stdout, 'data')
  const lock = await held('netplane-agent of node n1, pid 1')
  expect([statSync(path).mode & 0o777, statSync(path).uid]).toEqual([0o600, 0])
  expect(await take('netplane-agent of node n1, pid 2')).toEqual({ kind: 'taken', by: 'netplane-agent of node n1, pid 1' })
  lock[Symbol.dispose]()
})

test('a lock that is removed leaves nothing, and keeps no agent out', async () => {
  const first = await held('netplane-agent --cleanup, pid 1')
  rmSync(path)
  first.remove()
  expect(existsSync(join(folder, 'run'))).toBe(false)
  const second = await held('netplane-agent of node n1, pid 2')
  expect(await take('netplane-agent of node n1, pid 3')).toMatchObject({ kind: 'taken' })
  second.remove()
})
