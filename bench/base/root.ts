// SPDX-License-Identifier: Apache-2.0
/** Where the package is, and how a part of the benchmark is started as a process of its own. Layer: bench. */
import { existsSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(import.meta.url)
/** ".ts" among the sources, ".js" in a build */
const EXTENSION = extname(HERE)

/** The folder of package.json, from the sources and from dist/ alike. */
export function packageRoot(): string {
  let folder = dirname(HERE)
  while (!existsSync(join(folder, 'package.json')) && folder !== '/') folder = dirname(folder)
  return folder
}

/** Command line of a part ("packet/main"), run as we are run. */
export function partCommand(part: string): string[] {
  return nodeCommand(resolve(dirname(HERE), '..', part + EXTENSION))
}

/** Command line of the agent: built when we are, sources when we are. */
export function agentCommand(): string[] {
  return nodeCommand(EXTENSION === '.js' ? join(packageRoot(), 'dist/agent/main.js') : join(packageRoot(), 'agent/main.ts'))
}

function nodeCommand(file: string): string[] {
  return [process.execPath, ...(file.endsWith('.ts') ? ['--conditions=source'] : []), file]
}
