// SPDX-License-Identifier: Apache-2.0
/** A node of its own: network and mount namespace, bpffs, cgroup and folders, and the agent in it. Needs root.
 * Layer: testkit. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { programCommand } from './program.ts'

/** A test that waits so long has failed. Verifying programs takes two seconds of an idle CPU, and ten tests may
 * want it. */
const PATIENCE_MS = 45_000

export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string }

export class ScratchNode implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'netplane-node-'))
  readonly resources = join(this.folder, 'resources')
  readonly state = join(this.folder, 'state')
  readonly cgroup: string
  readonly #holder: ChildProcess
  readonly #agents: AgentProcess[] = []

  private constructor(holder: ChildProcess, cgroup: string) {
    this.#holder = holder
    this.cgroup = cgroup
    mkdirSync(this.resources)
  }

  /** With lo up and nothing else. */
  static async make(): Promise<ScratchNode> {
    const mount = cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8'))
    if (mount === undefined) throw new Error('no cgroup2 is mounted')
    const cgroup = mkdtempSync(join(mount, 'netplane-test-'))
    const setup = 'mount -t bpf bpf /sys/fs/bpf && ip link set lo up && echo ready && exec cat'
    const holder = spawn('unshare', ['--net', '--mount', '--', 'sh', '-c', setup], { stdio: ['pipe', 'pipe', 'inherit'] })
    await new Promise((resolve, reject) => {
      holder.stdout.once('data', resolve)
      holder.once('exit', () => {
        reject(new Error('the namespaces could not be made'))
      })
    })
    return new ScratchNode(holder, cgroup)
  }

  /** Seen from outside: "sys/fs/bpf/netplane/maps/np_ct". */
  path(inside: string): string {
    return join(`/proc/${String(this.#holder.pid)}/root`, inside)
  }

  /** Gets a device of the network namespace that we are in. */
  take(device: string): void {
    execFileSync('ip', ['link', 'set', device, 'netns', String(this.#holder.pid)])
  }

  /** Runs a shell script on the node and returns its output; throws when it fails. */
  sh(script: string): string {
    return execFileSync('nsenter', [...this.#enter(), 'sh', '-ec', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Runs a command on the node; the caller ends it. */
  spawn(command: readonly string[]): ChildProcess {
    return spawn('nsenter', [...this.#enter(), ...command], { stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Writes a manifest as a deployment tool should: whole, by renaming. */
  put(file: string, objects: readonly unknown[]): void {
    const path = join(this.resources, file)
    writeFileSync(`${path}.part`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    renameSync(`${path}.part`, path)
  }

  drop(file: string): void {
    rmSync(join(this.resources, file))
  }

  /** Starts an agent for the node "n1". */
  agent(...flags: readonly string[]): AgentProcess {
    return this.#agent('pipe', flags)
  }

  /** The same, with a log that is not read: its pipe is full before it starts. */
  agentUnread(...flags: readonly string[]): AgentProcess {
    const pipe = join(this.folder, 'unread')
    execFileSync('mkfifo', [pipe])
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    try {
      for (;;) writeSync(fd, Buffer.alloc(4096))
    } catch (thrown) {
      if (!(thrown instanceof Error) || !('code' in thrown) || thrown.code !== 'EAGAIN') throw thrown
    }
    // another open file, as a runtime's: this one does not wait
    const log = openSync(pipe, constants.O_RDWR)
    const agent = this.#agent(log, flags)
    closeSync(fd)
    closeSync(log)
    return agent
  }

  #agent(log: 'pipe' | number, flags: readonly string[]): AgentProcess {
    const args = ['--node', 'n1', '--resources', this.resources, '--state-dir', this.state, '--health-port', '0', ...flags]
    const agent = new AgentProcess(
      spawn('nsenter', [...this.#enter(), ...programCommand('agent'), ...args], { stdio: ['ignore', log, 'pipe'] }),
    )
    this.#agents.push(agent)
    return agent
  }

  /** Runs the agent's program with these flags alone, to its end. */
  command(...flags: readonly string[]): { readonly status: number; readonly output: string } {
    try {
      return {
        status: 0,
        output: execFileSync('nsenter', [...this.#enter(), ...programCommand('agent'), ...flags], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      }
    } catch (thrown) {
      if (!(thrown instanceof Error) || !('status' in thrown) || !('stderr' in thrown)) throw thrown
      return { status: Number(thrown.status), output: String(thrown.stderr) }
    }
  }

  cleanup(): { readonly status: number; readonly output: string } {
    return this.command('--cleanup', '--state-dir', this.state, '--cgroup', this.cgroup)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents) await agent.kill()
    const ended = new Promise((resolve) => this.#holder.once('exit', resolve))
    this.#holder.kill('SIGKILL')
    await ended
    rmdirSync(this.cgroup)
    rmSync(this.folder, { recursive: true })
  }

  #enter(): string[] {
    return ['--target', String(this.#holder.pid), '--net', '--mount', '--']
  }
}

/** A running agent and what it has logged. */
export class AgentProcess {
  readonly lines: LogLine[] = []
  readonly #child: ChildProcess
  readonly #waiting = new Set<() => void>()
  #errors = ''
  #rest = ''
  #code: number | undefined

  constructor(child: ChildProcess) {
    this.#child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#read(text)
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
    child.once('close', (code) => {
      this.#code = code ?? -1
      this.#tell()
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Lines of this event so far. */
  events(event: string): LogLine[] {
    return this.lines.filter((line) => line.event === event)
  }

  /** The `count`th line of the event, which may have been there already. */
  async event(event: string, count = 1): Promise<LogLine> {
    await this.until(`event ${event}`, () => this.events(event).length >= count)
    const line = this.events(event)[count - 1]
    if (line === undefined) throw new Error('unreachable')
    return line
  }

  /** Until the condition holds; it is looked at whenever the agent says something, and every few ms. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS
    while (!condition()) {
      if (performance.now() > deadline || this.#code !== undefined) {
        const last = this.lines.slice(-5).map((line) => JSON.stringify(line))
        throw new Error(`waited for ${what}; exit code ${String(this.#code)}; last lines:\n${last.join('\n')}\n${this.#errors}`)
      }
      await this.#news()
    }
  }

  /** As the kernel does when memory is short. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Returns the exit code. */
  async stop(): Promise<number | undefined> {
    await this.#end('SIGTERM')
    return this.#code
  }

  /** Until it ends by itself; returns the exit code. */
  async ended(): Promise<number> {
    while (this.#code === undefined) await this.#news()
    return this.#code
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#code === undefined) this.#child.kill(signal)
    await this.ended()
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, 5)
      this.#waiting.add(done)
    })
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const parsed: unknown = JSON.parse(line)
      if (isLogLine(parsed)) this.lines.push(parsed)
    }
    this.#tell()
  }

  #tell(): void {
    for (const done of [...this.#waiting]) done()
  }
}

function isLogLine(value: unknown): value is LogLine {
  return typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string'
}
