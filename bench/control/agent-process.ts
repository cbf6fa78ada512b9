// SPDX-License-Identifier: Apache-2.0
/** The real agent as a child process: started, watched, measured, ended. Layer: bench. */
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { InternalError } from '#lib/base/errors.ts'
import { systemClock } from '#lib/base/clock.ts'
import { agentCommand } from '../base/root.ts'
import { memoryOf, type Memory } from '../base/process.ts'

const HEALTH_PORT = 19099
const METRICS_PORT = 19091
/** Each time costs the agent half a millisecond, and us as much: every 2 ms that was a tenth of what is measured. */
const POLL_MS = 10

export interface AgentPlace {
  readonly node: string
  readonly resources: string
  /** an API server instead */
  readonly kubeconfig?: string
  readonly pinDir: string
  readonly stateDir: string
  readonly log: string
}

export class AgentProcess {
  readonly pid: number
  readonly #child: ChildProcess
  readonly #startedAt: number

  private constructor(child: ChildProcess, startedAt: number) {
    if (child.pid === undefined) throw new InternalError('the agent did not start')
    this.pid = child.pid
    this.#child = child
    this.#startedAt = startedAt
  }

  static start(place: AgentPlace): AgentProcess {
    const log = openSync(place.log, 'a')
    const from = place.kubeconfig === undefined ? ['--resources', place.resources] : ['--kubeconfig', place.kubeconfig]
    const flags = ['--node', place.node, ...from, '--pin-dir', place.pinDir, '--state-dir', place.stateDir]
    const ports = ['--health-port', String(HEALTH_PORT), '--metrics-port', String(METRICS_PORT)]
    const startedAt = systemClock.now()
    const [program = '', ...args] = agentCommand()
    const child = spawn(program, [...args, ...flags, ...ports], { stdio: ['ignore', log, log] })
    closeSync(log)
    return new AgentProcess(child, startedAt)
  }

  /** Seconds from start to readiness. Throws InternalError when it ends before, or is not ready in time. */
  async ready(timeoutMs: number): Promise<number> {
    const end = this.#startedAt + timeoutMs
    const signal = AbortSignal.timeout(timeoutMs + 1000)
    while (systemClock.now() < end) {
      if (this.#child.exitCode !== null) throw new InternalError(`the agent ended with ${this.#child.exitCode} before it was ready`)
      const { status } = await page(HEALTH_PORT, '/readiness')
      if (status === 200) return (systemClock.now() - this.#startedAt) / 1000
      await systemClock.sleep(POLL_MS, signal)
    }
    throw new InternalError(`the agent is not ready after ${timeoutMs} ms: ${(await page(HEALTH_PORT, '/readiness')).body}`)
  }

  /** The samples of one metric, by their labels as written. */
  async metric(name: string): Promise<ReadonlyMap<string, number>> {
    const { body } = await page(METRICS_PORT, '/metrics')
    const samples = body.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    return new Map(samples.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
  }

  /** CPU time of all its threads so far, in ms. */
  cpuMs(): number {
    const tasks = `/proc/${this.pid}/task`
    return readdirSync(tasks).reduce(
      (sum, task) => sum + Number(readFileSync(join(tasks, task, 'schedstat'), 'utf8').split(' ')[0]) / 1e6,
      0,
    )
  }

  /** Resident memory in MB (1e6): now, and the most there was. */
  memoryMb(): Memory {
    return memoryOf(this.pid)
  }

  /** Resolves when it has ended. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill(signal)
    await gone
  }
}

/** Takes everything of the agent's off the namespace again. */
export async function cleanUp(place: AgentPlace, cgroup: string): Promise<void> {
  const [program = '', ...args] = agentCommand()
  const child = spawn(program, [...args, '--cleanup', '--pin-dir', place.pinDir, '--state-dir', place.stateDir, '--cgroup', cgroup], {
    stdio: 'ignore',
  })
  await new Promise((resolve) => child.once('exit', resolve))
}

/** status 0: no answer */
function page(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    request.on('error', () => resolve({ status: 0, body: '' }))
  })
}
