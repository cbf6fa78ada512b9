// SPDX-License-Identifier: Apache-2.0
/** Runs the tests of one file or folder, of any kind, after building what they run: `make t F=… [T='part of a
 * title']`, and `make watch`. Layer: test. */
import { spawnSync } from 'node:child_process'
import { watch } from 'node:fs'
import { kindOf, type Kind } from './runner/kinds.ts'

const USAGE = "usage: make t F=test/… [T='part of a title'], a test file or a folder of one kind; make watch [F=…]"
/** Only tests with such a title. */
const TITLE = process.env['T']
/** What is written by hand: a build writes beside it. */
const SOURCE = /\.(c|h|cc|ts|mjs|json|ya?ml|gyp)$/
const BUILT = /^(\.|build|dist|node_modules|docs)/
/** ms: an editor saves in several steps */
const SETTLED = 200

/** The exit code. */
function run(line: readonly string[]): number {
  const [file = '', ...args] = line
  return spawnSync(file, args, { stdio: 'inherit' }).status ?? 1
}

function vitest(kind: Kind, ...args: readonly string[]): number {
  const [how = 'run', ...paths] = args
  return run([
    ...kind.prefix,
    process.execPath,
    '--conditions=source',
    'node_modules/vitest/vitest.mjs',
    how,
    '--project',
    kind.project,
    ...paths,
    ...(TITLE === undefined ? [] : ['--testNamePattern', TITLE]),
  ])
}

function buildAndRun(kind: Kind, paths: readonly string[]): number {
  const built = run(['make', '--silent', '--jobs=2', '--no-print-directory', ...kind.targets])
  return built === 0 ? vitest(kind, 'run', ...paths) : built
}

/** Until it is interrupted. What vitest can follow, it follows itself: it knows which tests import what has changed. */
function follow(kind: Kind, paths: readonly string[]): number {
  if (kind.project === 'unit') return vitest(kind, 'watch', ...paths)
  buildAndRun(kind, paths)
  let timer: NodeJS.Timeout | undefined
  watch('.', { recursive: true }, (_event, name) => {
    if (name === null || BUILT.test(name) || !SOURCE.test(name)) return
    clearTimeout(timer)
    timer = setTimeout(() => buildAndRun(kind, paths), SETTLED)
  })
  return 0
}

function main(args: readonly string[]): number {
  const following = args.includes('--watch')
  const paths = args.filter((argument) => argument !== '--watch')
  const kinds = new Set((paths.length === 0 && following ? ['test'] : paths).map((path) => kindOf(path)))
  const [kind] = kinds
  if (kind === undefined || kinds.size > 1) {
    console.error(USAGE)
    return 2
  }
  return following ? follow(kind, paths) : buildAndRun(kind, paths)
}

process.exitCode = main(process.argv.slice(2))
