// SPDX-License-Identifier: Apache-2.0
/** Runs of tests in worlds of their own, one at a time. Root. Layer: test. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { quote } from '../../lab/network/node-root.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { inOwnWorld } from '../runner/world.ts'

let folder: string
let lock: string
let others: ChildProcess[]
/** such as no other process has */
let seconds: string
let said: string[]
const print = (line: string): number => said.push(line)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'np-world-'))
  lock = join(folder, 'lock')
  seconds = `600.${process.pid}${String(Math.trunc(performance.now() * 1000))}`
  others = []
  said = []
})
afterEach(async () => {
  for (const other of others.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    other.kill('SIGKILL')
    await once(other, 'close')
  }
  rmSync(folder, { recursive: true })
})

/** Processes that sleep for so many seconds as this test says. */
function sleepers(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandOf(name) === `sleep ${seconds} `)
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** A run by a process of its own, which goes on until it is ended. */
async function startOther(): Promise<ChildProcess> {
  const command = ['sh', '-c', `setsid sleep ${seconds} & sleep ${seconds}`]
  const code = `import { inOwnWorld } from './test/runner/world.ts'
    process.exit(await inOwnWorld(${JSON.stringify(command)}, { lock: ${JSON.stringify(lock)} }))`
  const other = spawn(process.execPath, ['--conditions=source', '--input-type=module-typescript', '--eval', code], { stdio: 'inherit' })
  others.push(other)
  await expect.poll(() => sleepers().length, { timeout: HANG_MS }).toBe(2)
  return other
}

test('a run has its own processes and folders, and tells its exit code', async () => {
  const looks = ['[ $PPID = 1 ]', '[ -z "$(ls -A /run/netns)" ]', '[ -d "$TMPDIR" ]', 'case "$TMPDIR" in /tmp/np.*) exit 7;; esac']
  expect(await inOwnWorld(['sh', '-c', looks.join(' && ')], { lock, print })).toBe(7)
  expect(said).toEqual([])
})

test('what a run leaves behind ends with it', async () => {
  expect(await inOwnWorld(['sh', '-c', `setsid sleep ${seconds} & sleep 0.2`], { lock, print })).toBe(0)
  expect(sleepers()).toEqual([])
})

test('all of a run that is killed ends, and the next one begins', async () => {
  const other = await startOther()
  other.kill('SIGKILL')
  await once(other, 'close')
  await expect.poll(sleepers, { timeout: HANG_MS }).toEqual([])
  expect(await inOwnWorld(['true'], { lock, print })).toBe(0)
})

test('a run waits for the one before, and says for whom', async () => {
  const other = await startOther()
  const next = inOwnWorld(['true'], { lock, print })
  const told = `waits for another run of the tests: process ${String(other.pid)}, which began at `
  await expect.poll(() => said, { timeout: HANG_MS }).toEqual([expect.stringContaining(told)])
  expect(sleepers().length).toBe(2)
  for (const pid of sleepers()) process.kill(Number(pid))
  expect(await next).toBe(0)
})

test('a run ends the one before when that takes too long', async () => {
  const other = await startOther()
  expect(await inOwnWorld(['true'], { lock, waitMs: 0, print })).toBe(0)
  expect(said).toEqual([expect.stringContaining(`ends another run of the tests: process ${String(other.pid)}`)])
  await expect.poll(sleepers, { timeout: HANG_MS }).toEqual([])
})

test('a run in a chroot has its own folders as well, and leaves no mount in it', () => {
  const root = join(folder, 'root')
  const entered = 'unshare --mount sh -c "nsenter --mount=/proc/self/ns/mnt [ -d /work/lib ]"'
  const inside = ['unshare --mount true', entered, '[ -z "$(ls -A /run/netns)" ]', 'touch /run/netns/x', '[ "$PWD" = /work ]']
  const code = `import { inOwnWorld } from './test/runner/world.ts'
    process.exit(await inOwnWorld(['sh', '-c', ${JSON.stringify(inside.join(' && '))}], { lock: '/run/lock' }))`
  // this tree is at /work; the root is no mount
  const steps = `
    for dir in usr etc proc sys dev; do mkdir -p ${root}/$dir; mount --rbind /$dir ${root}/$dir; done
    for link in bin lib lib64 sbin; do ln -s usr/$link ${root}/$link; done
    mkdir ${root}/tmp ${root}/run ${root}/work ${root}/node
    mount --rbind ${process.cwd()} ${root}/work
    mount --rbind ${dirname(process.execPath)} ${root}/node
    before=$(wc -l < /proc/self/mountinfo)
    chroot ${root} sh -c 'cd /work && exec "$@"' sh /node/node --conditions=source --input-type=module-typescript --eval ${quote(code)}
    [ "$before" = "$(wc -l < /proc/self/mountinfo)" ] && [ -z "$(ls -A ${root}/run/netns)" ]`
  expect(spawnSync('unshare', ['--mount', '--propagation', 'shared', 'sh', '-ec', steps], { stdio: 'inherit' }).status).toBe(0)
})
