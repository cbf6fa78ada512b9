// SPDX-License-Identifier: Apache-2.0
/** How a part of the benchmark is started as a process of its own. Layer: bench. */
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

const HERE = fileURLToPath(import.meta.url)
/** ".ts" among the sources, ".js" in a build */
const EXTENSION = extname(HERE)

/** Command line of a part ("packet/main"), run as we are run. */
export function partCommand(part: string): string[] {
  return nodeCommand(resolve(dirname(HERE), '..', part + EXTENSION))
}

/** Command line of the agent: built when we are, sources when we are. */
export function agentCommand(): string[] {
  return nodeCommand(EXTENSION === '.js' ? join(packageRoot(), 'dist/agent/main.js') : join(packageRoot(), 'agent/main.ts'))
}
