// SPDX-License-Identifier: Apache-2.0
/** Where agents are measured: a node with one device, in network and mount namespaces that this process has for
 * itself. Layer: bench. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InternalError } from '#lib/base/errors.ts'
import { NODE_ADDRESS, NODE_NAME } from '../generate.ts'
import type { AgentPlace } from './agent-process.ts'
import { AgentProcess } from './agent-process.ts'

export const READY_MS = 120_000
/** until what a start has used is given back */
export const QUIET_MS = 10_000
export const CHANGE_TIMEOUT_MS = 10_000

export interface Sandbox {
  readonly place: AgentPlace
  readonly cgroup: string
  /** agents to be ended whatever happens */
  readonly running: Set<AgentProcess>
  /** never aborts */
  readonly signal: AbortSignal
}

/** An agent that ends with the ground at the latest. */
export function start({ place, running }: Pick<Sandbox, 'place' | 'running'>): AgentProcess {
  const agent = AgentProcess.start(place)
  running.add(agent)
  return agent
}

/** Makes the node, has it used, and takes everything away again. What is thrown comes after the end of the agent's
 * log. */
export async function inSandbox(use: (ground: Sandbox) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), 'netplane-bench-'))
  const cgroup = makeCgroup()
  const place = {
    node: NODE_NAME,
    resources: join(base, 'resources'),
    pinDir: join(base, 'bpf', 'netplane'),
    stateDir: join(base, 'state'),
    log: join(base, 'agent.log'),
  }
  mkdirSync(join(base, 'bpf'))
  mkdirSync(place.stateDir)
  execFileSync('mount', ['-t', 'bpf', 'bpf', join(base, 'bpf')])
  const running = new Set<AgentProcess>()
  try {
    for (const line of [
      'link set lo up',
      'link add eth0 type veth peer name eth0p',
      `addr add ${NODE_ADDRESS}/24 dev eth0`,
      'link set eth0 up',
      'link set eth0p up',
    ])
      ip(line)
    await use({ place, cgroup, running, signal: new AbortController().signal })
  } catch (thrown) {
    process.stderr.write(`the agent's log ends:\n${readFileSync(place.log, 'utf8').slice(-4000)}\n`)
    throw thrown
  } finally {
    for (const agent of running) await agent.end('SIGKILL')
    execFileSync('umount', [join(base, 'bpf')])
    rmSync(base, { recursive: true })
    rmdirSync(cgroup)
  }
}

function ip(line: string): void {
  execFileSync('ip', line.split(' '), { stdio: ['ignore', 'ignore', 'inherit'] })
}

/** A cgroup of our own: connect-time programs must not meet the machine's other processes. */
function makeCgroup(): string {
  const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'utf8'))?.[1]
  if (mount === undefined) throw new InternalError('no cgroup2 is mounted')
  return mkdtempSync(join(mount, 'netplane-bench-'))
}
