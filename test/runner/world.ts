// SPDX-License-Identifier: Apache-2.0
/** A run of tests has the machine to itself, and a world that ends with it: its own tree of processes, its own folders
 * in /run where labs and clusters keep what they have, and a folder for temporary files. Root. Layer: test. */
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { systemClock } from '#lib/base/clock.ts'

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
/** What labs, clusters and agents keep there has fixed names. */
const FOLDERS = ['/run/netns', '/run/netplane', '/run/netplane-lab', '/run/containerd']
/** "$1" the lock, "$2" the name of this run, then the command. The shell stays, as the first process of its world: it
 * waits for processes that have lost their parents. */
const SCRIPT = `
printf '%s' "$2" > "$1"; shift 2
mkdir -p "$TMPDIR" || exit 1
for folder in ${FOLDERS.join(' ')}; do mkdir -p "$folder" && mount -t tmpfs tmpfs "$folder" || exit 1; done
"$@"
exit $?`

/** This process is in a world already. */
export function isInOwnWorld(): boolean {
  return process.env[WORLD] === 'own'
}

/** Runs the command in a world of its own, after other runs; its exit code. The command ends with this process, however
 * that ends, and with the one that has started it. */
export async function inOwnWorld(command: readonly string[], options: WorldOptions = {}): Promise<number> {
  const { lock = '/run/lock/netplane-test', waitMs = 30 * 60_000, print = console.log } = options
  const folder = `/tmp/np.${process.pid}`
  const end = performance.now() + waitMs
  try {
    let told = ''
    for (;;) {
      const code = await spawned(worldCommand(command, lock), folder)
      if (code !== TAKEN) return code
      const holder = holderOf(lock)
      // one that has just taken the lock has yet to write its name
      const isGone = !holder.lives && holder.name === told
      if (isGone || performance.now() > end) endHolder(lock, holder, print)
      else if (holder.name !== told) print(`waits for another run of the tests: ${holder.name}`)
      told = holder.name
      await systemClock.sleep(LOOK_MS, new AbortController().signal)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function worldCommand(command: readonly string[], lock: string): readonly string[] {
  return [
    ...['setpriv', '--pdeathsig', 'KILL', 'flock', '--no-fork', '--nonblock', '--conflict-exit-code', String(TAKEN), lock],
    ...['unshare', '--mount', '--propagation', 'slave', '--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'],
    ...['sh', '-c', SCRIPT, 'world', lock, nameOf(process.pid), ...command],
  ]
}

function spawned(line: readonly string[], folder: string): Promise<number> {
  const [file = '', ...args] = line
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, TMPDIR: folder, [WORLD]: 'own' } })
    const parent = process.ppid
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

interface Holder {
  readonly name: string
  readonly pid: number
  /** the process that the lock names, and not a later one with its number */
  readonly lives: boolean
}

/** "process 123, which began at 4567": in ticks since the machine came up */
function nameOf(pid: number): string {
  return `process ${pid}, which began at ${beginOf(pid) ?? 0}`
}

function holderOf(lock: string): Holder {
  const name = readFileSync(lock, 'utf8')
  const pid = Number(/^process (\d+)/.exec(name)?.[1] ?? 0)
  return { name, pid, lives: pid > 0 && name === nameOf(pid) }
}

/** undefined: there is none. */
function beginOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // the name before may have spaces and brackets
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
  } catch {
    return undefined
  }
}

/** Whatever still has the lock then does so without being a run. */
function endHolder(lock: string, { name, pid, lives }: Holder, print: (line: string) => void): void {
  print(lives ? `ends another run of the tests: ${name}` : `goes on without ${name}, which is gone`)
  if (lives) process.kill(pid, 'SIGKILL')
  rmSync(lock, { force: true })
}
