// SPDX-License-Identifier: Apache-2.0
/** A small cluster of network namespaces on this machine, as tests, the demo and the command line use it.
 * Layer: lab. */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { Agents } from './processes/agents.ts'
import { build } from './network/build.ts'
import { mustRun, runCommand, type CommandOptions, type Outcome } from './processes/command.ts'
import { knownLabs, takeDown, type Leftover } from './network/down.ts'
import { LabError } from './errors.ts'
import { takeInventory } from './network/inventory.ts'
import { launchCommand } from './processes/launch.ts'
import { readManifests } from './manifests.ts'
import { parseLabName, parseTarget, type Target } from './network/names.ts'
import { DEFAULT_LAB, resolveOptions, type UpOptions } from './options.ts'
import { agentLog } from './paths.ts'
import { entryOf } from './processes/place-holders.ts'
import { ensureServers } from './processes/servers.ts'
import { readState, requireState, withLock, type LabState } from './state.ts'
import { statusOf, type LabStatus } from './status.ts'
import { layOut, nodeNamed, type Topology } from './network/topology.ts'

/** A place, or its text: "client", "node/a", "default/web". */
export type Place = Target | string

export class Lab implements AsyncDisposable {
  readonly name: string
  #state: LabState

  private constructor(name: string, state: LabState) {
    this.name = name
    this.#state = state
  }

  /** Builds it, or repairs and extends the one there is. When that fails, what was begun stays for `up` or `down`. */
  static async build(options: UpOptions): Promise<Lab> {
    const name = parseLabName(options.name ?? DEFAULT_LAB)
    return await withLock(name, async () => {
      const say = options.progress ?? (() => undefined)
      const before = readState(name)
      const resolved = resolveOptions(options, before?.options)
      const inventory = takeInventory(readManifests(resolved.resources), resolved.nodes)
      for (const note of inventory.notes) say(`note: ${note}`)
      const topology = layOut(inventory, { ...resolved, lab: name })
      say(`network: ${topology.nodes.length} nodes, ${topology.pods.length} pods`)
      await build({ before, topology, options: resolved })
      const lab = new Lab(name, requireState(name))
      if (resolved.servers) say('echo servers in pods')
      if (resolved.servers) await ensureServers(topology)
      if (resolved.agents) say(`agents: ${resolved.agentCommand.join(' ')}`)
      if (resolved.agents) await lab.startAgents(options.wait ?? true)
      return lab
    })
  }

  /** A new one, for `await using`: what has its name is taken away first, as a run that was killed leaves it, and so is
   * one that fails. Throws LabError also when that cannot be taken away. */
  static async up(options: UpOptions): Promise<Lab> {
    const name = parseLabName(options.name ?? DEFAULT_LAB)
    await withLock(name, () => makeRoom(name))
    try {
      return await Lab.build(options)
    } catch (thrown) {
      await withLock(name, () => takeDown(name))
      throw thrown
    }
  }

  /** Throws LabError when there is none of this name. */
  static open(name: string = DEFAULT_LAB): Lab {
    return new Lab(name, requireState(parseLabName(name)))
  }

  /** Takes away a lab of which perhaps only parts are left; the answer names what could not be. */
  static async remove(name: string = DEFAULT_LAB): Promise<Leftover[]> {
    return await withLock(parseLabName(name), () => takeDown(name))
  }

  /** What was built last. */
  get topology(): Topology {
    return this.#state.topology
  }

  /** Program and first arguments of the agents. */
  get agentCommand(): readonly string[] {
    return this.#state.options.agentCommand
  }

  get agents(): Agents {
    return new Agents(this.topology, this.#state.options)
  }

  /** Reads the manifests again: new pods come, removed ones go. Agents watch the directory by themselves. */
  async sync(options: UpOptions = {}): Promise<void> {
    await Lab.build({ ...options, name: this.name })
    this.#state = requireState(this.name)
  }

  /** Starts all that do not run. */
  async startAgents(wait: boolean): Promise<void> {
    const agents = this.agents
    await mapLimited(this.topology.nodes, 2, async (node) => {
      await agents.start(node.name)
      if (wait) await agents.waitReady(node.name)
    })
  }

  /** A complete command line that runs `command` there, for a caller that starts it itself. Throws LabError when
   * there is no such place. */
  commandIn(place: Place, command: readonly string[], dir = '/'): string[] {
    const target = typeof place === 'string' ? parseTarget(place) : place
    return launchCommand(entryOf(this.topology, target), dir, command)
  }

  /** Runs it to its end; the exit code is in the answer. */
  async run(place: Place, command: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
    return await runCommand(this.commandIn(place, command), options)
  }

  /** As {@link run}, but throws CommandError when it fails; the answer is its standard output. */
  async mustRun(place: Place, command: readonly string[], options: CommandOptions = {}): Promise<string> {
    return await mustRun(this.commandIn(place, command), options)
  }

  /** Starts it; signals to the child reach the command itself. It ends with the lab at the latest. */
  spawn(place: Place, command: readonly string[], stdio: StdioOptions = ['ignore', 'pipe', 'pipe']): ChildProcess {
    const [program = '', ...args] = this.commandIn(place, command)
    return spawn(program, args, { stdio, detached: true })
  }

  async status(): Promise<LabStatus> {
    return await statusOf(this.#state)
  }

  /** The file with all that the agent of this node has printed. Throws LabError when there is no such node, or it
   * never had an agent. */
  logFile(node: string): string {
    const file = agentLog(this.name, nodeNamed(this.topology, node).name)
    if (!existsSync(file)) throw new LabError(`agent of node ${node}`, 'was never started')
    return file
  }

  /** What is in {@link logFile}. */
  log(node: string): string {
    return readFileSync(this.logFile(node), 'utf8')
  }

  /** Takes it away; the answer names what could not be. Safe to call twice. */
  async down(): Promise<Leftover[]> {
    return await Lab.remove(this.name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down()
  }
}

/** Processes of others may stay: their namespaces have no name any more. */
async function makeRoom(name: string): Promise<void> {
  if (!knownLabs().includes(name)) return
  const left = await takeDown(name)
  if (!knownLabs().includes(name)) return
  throw new LabError(`lab ${name}`, `the one before cannot be taken away: ${left.map(({ what, why }) => `${what}: ${why}`).join('; ')}`)
}
