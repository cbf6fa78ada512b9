// SPDX-License-Identifier: Apache-2.0
/** A run of tests has the machine to itself, and a world that ends with it: its own tree of processes, its own folders
 * in /run where labs and clusters keep what they have, and a folder for temporary files. Root. Layer: test. */
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { beginOf, endRun, holderOf, nameOf, removeLock, Waiting } from './world/lock.ts'

export interface WorldOptions {
  /** of the one run that a machine has at a time; holds the name of that run while it goes on */
  readonly lock?: string
  /** for another run, which is ended after that */
  readonly waitMs?: number
  readonly print?: (line: string) => void
}

const WORLD = 'NETPLANE_TEST_WORLD'
/** Another run has the lock; `flock` says so. */
const TAKEN = 75
const LOOK_MS = 1000
const GONE_MS = 10_000
/** What labs, clusters and agents keep there has fixed names. */
const FOLDERS = ['/run/netns', '/run/netplane', '/run/netplane-lab', '/run/containerd']
/** "$1" the lock, "$2" the name of this run, then the command. The shell stays, as the first process of its world: it
 * waits for processes that have lost their parents. */
const SCRIPT = `
printf '%s' "$2" > "$1"; shift 2
mount -t proc proc /proc || exit 1
mkdir -p "$TMPDIR" || exit 1
for folder in ${FOLDERS.join(' ')}; do mkdir -p "$folder" && mount -t tmpfs tmpfs "$folder" || exit 1; done
"$@"
exit $?`
/** Runs "$@" where no mount gets out. The root of a chroot is a folder: `unshare --mount` fails there, and a process
 * that enters a namespace of mounts (`nsenter --mount`) leaves the chroot. So the folder is mounted on the machine's
 * root, which a process gets by entering the namespace that it is in. */
const APART = `
mount --make-rslave / 2>/dev/null && exec "$@"
mount --make-private /proc && mount -t proc proc /proc || exit 1
nsenter --mount=/proc/self/ns/mnt sleep 60 & outside=$!
for try in $(seq 100); do
  [ "$(stat -Lc %d:%i /proc/$outside/root)" = "$(stat -c %d:%i /)" ] || break
  sleep 0.1
done
mount -c --make-rslave /proc/$outside/root && mount -c --rbind / /proc/$outside/root && kill $outside || exit 1
exec nsenter --mount=/proc/self/ns/mnt sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"`

/** This process is in a world already. */
export function isInOwnWorld(): boolean {
  return process.env[WORLD] === 'own'
}

/** Runs the command in a world of its own, after other runs; its exit code. The command ends with this process, however
 * that ends, and with the one that has started it. */
export async function inOwnWorld(command: readonly string[], options: WorldOptions = {}): Promise<number> {
  const { lock = '/run/lock/netplane-test', waitMs = 30 * 60_000, print = console.log } = options
  const [folder, parent] = [temporaryFolder(process.pid), process.ppid]
  const waiting = new Waiting({ waitMs, goneMs: GONE_MS })
  mkdirSync(dirname(lock), { recursive: true })
  try {
    while (process.ppid === parent) {
      const code = await spawned(worldCommand(command, lock), folder, parent)
      if (code !== TAKEN) return code
      const holder = holderOf(lock)
      const { step, isNew } = waiting.next(holder, performance.now())
      const name = holder.name || 'one without a name'
      if (step === 'end') {
        print(`ends another run of the tests: ${name}`)
        endRun(holder)
      } else if (step === 'remove') {
        print(`goes on without another run of the tests, which is gone: ${name}`)
        removeLock(lock)
      } else if (isNew) print(`waits for another run of the tests: ${name}`)
      await systemClock.sleep(LOOK_MS, new AbortController().signal)
    }
    // whoever has started it is gone
    return 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Also apart from that of a run in another tree of processes, where numbers begin again. */
function temporaryFolder(pid: number): string {
  return `/tmp/np.${pid}.${beginOf(pid) ?? 0}`
}

function worldCommand(command: readonly string[], lock: string): readonly string[] {
  return [
    ...['setpriv', '--pdeathsig', 'KILL', 'flock', '--no-fork', '--nonblock', '--conflict-exit-code', String(TAKEN), lock],
    ...['unshare', '--mount', '--propagation', 'unchanged', '--pid', '--fork', '--kill-child=SIGKILL'],
    ...['sh', '-c', APART, 'apart', 'sh', '-c', SCRIPT, 'world', lock, nameOf(process.pid), ...command],
  ]
}

/** Ends with the parent of this process. */
function spawned(line: readonly string[], folder: string, parent: number): Promise<number> {
  const [file = '', ...args] = line
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, TMPDIR: folder, [WORLD]: 'own' } })
    const orphaned = setInterval(() => {
      if (process.ppid !== parent) child.kill('SIGKILL')
    }, LOOK_MS)
    child.on('error', reject)
    child.on('close', (code) => {
      clearInterval(orphaned)
      resolve(code ?? 1)
    })
  })
}
