// SPDX-License-Identifier: Apache-2.0
/** The supervisor's part for node agents: start, stop, kill, ask whether they are ready. Layer: lab. */
import { systemClock } from '#lib/base/clock.ts'
import { runCommand } from './command.ts'
import { daemonPid, ensureDaemon, logTail, shorten, stopDaemon } from './daemon.ts'
import { LabError } from '../errors.ts'
import { healthPortOf } from '../network/inventory.ts'
import { launchCommand } from './launch.ts'
import { readManifests } from '../manifests.ts'
import { agentLog, toolCommand } from '../paths.ts'
import { agentCgroup, entryOf, requireHolder } from './place-holders.ts'
import { at, listAt, textAt } from '../raw.ts'
import { longer } from '../slowness.ts'
import type { SavedOptions } from '../state.ts'
import { nodeNamed, type Topology } from '../network/topology.ts'

/** Long enough for a cold start of the sources on a busy machine with two cores. */
const READY_MS = 60_000

export class Agents {
  readonly #topology: Topology
  readonly #options: Pick<SavedOptions, 'agentCommand' | 'agentFlags' | 'resources'>

  constructor(topology: Topology, options: Pick<SavedOptions, 'agentCommand' | 'agentFlags' | 'resources'>) {
    this.#topology = topology
    this.#options = options
  }

  /** undefined when it does not run */
  pid(node: string): number | undefined {
    return daemonPid(agentCgroup(this.#topology.lab, node))
  }

  /** Its process id; nothing happens when it runs. */
  async start(node: string): Promise<number> {
    const { lab } = this.#topology
    const { netns } = nodeNamed(this.#topology, node)
    const { agentCommand, agentFlags, resources } = this.#options
    return await ensureDaemon({
      subject: `agent of node ${node}`,
      entry: { cgroup: agentCgroup(lab, node), netns, holder: requireHolder(lab, node) },
      command: [...agentCommand, '--node', node, ...(agentFlags ?? ['--resources', resources]), '--state-dir', '/run/netplane'],
      log: agentLog(lab, node),
    })
  }

  /** SIGTERM, or SIGKILL; resolves when it is gone. False when none ran. */
  async stop(node: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
    nodeNamed(this.#topology, node)
    return await stopDaemon(agentCgroup(this.#topology.lab, node), signal, 10_000)
  }

  /** Throws LabError with the end of its log when it ends, or is not ready in time. */
  async waitReady(node: string, timeoutMs = READY_MS): Promise<void> {
    const longest = longer(timeoutMs)
    const end = systemClock.now() + longest
    let answer = { ready: false, text: '' }
    while (!answer.ready) {
      const ended = this.pid(node) === undefined
      if (ended || systemClock.now() > end) {
        const log = logTail(agentLog(this.#topology.lab, node), 10)
        throw new LabError(
          `agent of node ${node}`,
          `${ended ? 'ended' : `not ready after ${longest} ms: ${answer.text.trim()}`}; its log ends:\n${log}`,
        )
      }
      answer = await this.readiness(node, 2000)
    }
  }

  /** Asks /readiness inside the node, for at most `waitMs` until it is so; `text` says what is missing. */
  async readiness(node: string, waitMs = 0): Promise<{ readonly ready: boolean; readonly text: string }> {
    const answer = await this.get({ node, port: this.#healthPort(node), path: '/readiness', waitMs })
    return { ready: answer.status === 0, text: shorten(failingConditions(answer.text)) }
  }

  /** As the manifests say now, which agents follow; while they cannot be read, as they said when the lab was built. */
  #healthPort(node: string): number {
    try {
      return healthPortOf(readManifests(this.#options.resources), node)
    } catch {
      return this.#topology.healthPort
    }
  }

  /** A page of the agent, or of anything else that listens on the node's loopback. status 0: success, 1: refused by
   * the page, 2: no answer. */
  async get(page: {
    readonly node: string
    readonly port: number
    readonly path: string
    readonly waitMs?: number
  }): Promise<{ readonly status: number; readonly text: string }> {
    const entry = entryOf(this.#topology, { kind: 'node', node: page.node })
    const command = [...toolCommand('http'), '--wait-ms', String(page.waitMs ?? 0), `http://127.0.0.1:${page.port}${page.path}`]
    const outcome = await runCommand(launchCommand(entry, '/', command))
    return { status: outcome.status ?? 2, text: outcome.stdout + outcome.stderr }
  }
}

/** Of a health report: "dataplane.programs: refused", one after another; any other text as it is. */
function failingConditions(text: string): string {
  try {
    const report: unknown = JSON.parse(text)
    const failing = listAt(report, 'conditions').filter((condition) => at(condition, 'ok') !== true)
    return failing.map((condition) => `${textAt(condition, 'name') ?? '?'}: ${textAt(condition, 'reason') ?? '?'}`).join('; ')
  } catch {
    return text.trim()
  }
}
