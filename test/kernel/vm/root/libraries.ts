// SPDX-License-Identifier: Apache-2.0
/** Finds every shared library that some programs of any architecture need, by reading them rather than running them.
 * Layer: test. */
import { existsSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { command } from '../../../../testkit/base/command.ts'

export interface Needed {
  /** where the program wants its dynamic loader, absolute */
  readonly loader: string
  /** library name → file of this machine; the loader is among them */
  readonly libraries: ReadonlyMap<string, string>
}

/** `searchDirs` in order of preference. The first program must be an executable: it names the loader. */
export async function neededLibraries(programs: readonly string[], searchDirs: readonly string[]): Promise<Needed> {
  const headers = await command('readelf', ['-lW', ...programs.slice(0, 1)])
  const loader = /Requesting program interpreter: ([^\]]+)\]/.exec(headers)?.[1]
  if (loader === undefined) throw new Error(`${programs[0]} names no dynamic loader`)
  const libraries = new Map<string, string>()
  const queue = [...programs]
  const find = (name: string): string => {
    const found = searchDirs.map((dir) => join(dir, name)).find((path) => existsSync(path))
    if (found === undefined) throw new Error(`no ${name} in ${searchDirs.join(', ')}`)
    return realpathSync(found)
  }
  const loaderName = basename(loader)
  libraries.set(loaderName, find(loaderName))
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    for (const name of await needsOf(file)) {
      if (libraries.has(name)) continue
      const library = find(name)
      libraries.set(name, library)
      queue.push(library)
    }
  }
  return { loader, libraries }
}

async function needsOf(file: string): Promise<string[]> {
  const dynamic = await command('readelf', ['-dW', file])
  return [...dynamic.matchAll(/\(NEEDED\)\s+Shared library: \[([^\]]+)\]/g)].flatMap((match) => match[1] ?? [])
}
