// SPDX-License-Identifier: Apache-2.0
/** Runs the tests of one file or folder, of any kind, after building what they run: `make t F=…`, and `make watch`. Layer: test. */
import { spawnSync } from 'node:child_process'
import { kindOf } from './support/kinds.ts'

const USAGE = 'usage: make t F=test/…, a test file or a folder of one kind; make watch [F=…]'

function run(line: readonly string[]): number {
  const [file = '', ...args] = line
  return spawnSync(file, args, { stdio: 'inherit' }).status ?? 1
}

function main(args: readonly string[]): number {
  const watch = args.includes('--watch')
  const paths = args.filter((argument) => argument !== '--watch')
  const kinds = new Set(paths.map((path) => kindOf(path)))
  if (kinds.size > 1 || (kinds.size === 0 && !watch)) {
    console.error(USAGE)
    return 2
  }
  const kind = [...kinds][0] ?? kindOf('test')
  if (kind.targets.length > 0) {
    const built = run(['make', '--no-print-directory', ...kind.targets])
    if (built !== 0) return built
  }
  const tool = ['node_modules/vitest/vitest.mjs', watch ? 'watch' : 'run', '--project', kind.project]
  return run([...kind.prefix, process.execPath, '--conditions=source', ...tool, ...paths])
}

process.exitCode = main(process.argv.slice(2))
