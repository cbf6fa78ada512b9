// SPDX-License-Identifier: Apache-2.0
/** Writes the pages under docs/generated that are made from the code; with --check only says which are out of date. Layer: scripts. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { configPage } from '#agent/config/docs.ts'

/** Path from the repository's root → text. */
export const pages: ReadonlyMap<string, () => string> = new Map([['docs/generated/config.md', configPage]])

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function main(check: boolean): void {
  const stale = [...pages].filter(([path, make]) => textOf(path) !== make())
  for (const [path, make] of stale) {
    process.stdout.write(`${check ? 'out of date' : 'written'}: ${path}\n`)
    if (check) process.exitCode = 1
    else {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, make())
    }
  }
}

if (import.meta.main) main(process.argv.includes('--check'))
