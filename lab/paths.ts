// SPDX-License-Identifier: Apache-2.0
/** Where a lab keeps its files, and where our own programs lie. Layer: lab. */
import { existsSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

const HERE = fileURLToPath(import.meta.url)
/** ".ts" in a source tree, ".js" in a build: what this file itself is. */
const EXTENSION = extname(HERE)

/** All labs of this machine. */
export const LABS = '/run/netplane-lab'

export interface LabPaths {
  readonly dir: string
  /** beside it: it is locked before there is a lab */
  readonly lock: string
  readonly state: string
  readonly logs: string
}

export function labPaths(lab: string): LabPaths {
  const dir = join(LABS, lab)
  return { dir, lock: `${dir}.lock`, state: join(dir, 'state.json'), logs: join(dir, 'logs') }
}

export function agentLog(lab: string, node: string): string {
  return join(labPaths(lab).logs, `agent-${node}.log`)
}

export function serverLog(lab: string, pod: string): string {
  return join(labPaths(lab).logs, `server-${pod.replace('/', '.')}.log`)
}

/** Command line that starts one of lab/tools with the Node that runs us. */
export function toolCommand(name: string): string[] {
  return nodeCommand(resolve(dirname(HERE), 'tools', name + EXTENSION))
}

/** The built agent, or its sources where nothing is built yet. */
export function defaultAgentCommand(): string[] {
  const root = packageRoot()
  const built = join(root, 'dist/agent/main.js')
  return nodeCommand(existsSync(built) ? built : join(root, 'agent/main.ts'))
}
