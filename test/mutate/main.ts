#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** `make mutate`: does a test notice a small fault? COUNT (default 20) mutants, drawn by SEED, of the files that match
 * FILES (default: agent, lib, cli and bpf), each in a copy of the tree against the quickest tests that should see
 * it: those that import the file, of C the packet cases. Survivors are listed by file and line. Exit code 0 unless
 * it cannot tell, because tests fail without a fault: a survivor is a question, not a failure. Layer: test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { inOwnNamespaces } from '../../testkit/base/namespaces.ts'
import { copyOfTree, makeIn } from '../support/copy-of-tree.ts'
import { lcg } from '../support/lcg.ts'
import { applied, described, mutantsOfC, mutantsOfTypeScript, type Mutant } from './mutants.ts'

const ROOT = packageRoot()
const COUNT = Number(process.env['COUNT'] ?? 20)
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 0x1_0000_0000))
const FILES = process.env['FILES']?.split(' ') ?? ['agent/*.ts', 'lib/*.ts', 'cli/*.ts', 'bpf/*.h', 'bpf/*.c']
/** ms: what a fault keeps from ending has been noticed */
const LIMIT = 180_000

interface Drawn {
  readonly file: string
  readonly text: string
  readonly mutant: Mutant
}

function allMutants(): readonly Drawn[] {
  const files = execFileSync('git', ['ls-files', ...FILES], { cwd: ROOT, encoding: 'utf8' }).split('\n')
  return files
    .filter((file) => file !== '' && !file.endsWith('/main.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8')
      const mutants = file.endsWith('.ts') ? mutantsOfTypeScript(text) : mutantsOfC(text)
      return mutants.map((mutant) => ({ file, text, mutant }))
    })
}

function vitest(copy: string, prefix: readonly string[], ...args: readonly string[]): boolean {
  const [program = '', ...rest] = [...prefix, process.execPath, '--conditions=source', 'node_modules/vitest/vitest.mjs', ...args]
  // what they draw belongs to what can be had again; what is built has no mutant
  const env = { ...process.env, SEED: String(SEED), NETPLANE_BUILT: 'false' }
  return spawnSync(program, [...rest, '--bail=1', '--reporter=dot'], { cwd: copy, env, timeout: LIMIT }).status === 0
}

type Verdict = 'killed' | 'survived' | 'does not build' | 'unclear'

/** Whether the tests of the file pass; undefined: it does not build. */
function passes(copy: string, file: string): boolean | undefined {
  if (file.endsWith('.ts')) return vitest(copy, [], 'related', '--run', '--project=unit', file)
  if (!makeIn(copy, 'bpf')) return undefined
  return vitest(copy, inOwnNamespaces, 'run', '--project=kernel', 'test/kernel/packets.test.ts')
}

function judge(copy: string, { file, text, mutant }: Drawn): Verdict {
  writeFileSync(join(copy, file), applied(text, mutant))
  const passed = passes(copy, file)
  writeFileSync(join(copy, file), text)
  if (passed === undefined) return 'does not build'
  if (passed) return 'survived'
  // tests that fail without a fault tell nothing of one
  return passes(copy, file) === true ? 'killed' : 'unclear'
}

function main(): void {
  const random = lcg(SEED)
  const left = [...allMutants()]
  const counts: Record<Verdict, number> = { killed: 0, survived: 0, 'does not build': 0, unclear: 0 }
  const survivors: string[] = []
  const copy = copyOfTree(ROOT, 'mutate')
  makeIn(copy, 'bpf')
  try {
    while (counts.killed + counts.survived + counts.unclear < COUNT && left.length > 0) {
      const [drawn] = left.splice(random(left.length), 1)
      if (drawn === undefined) break
      const verdict = judge(copy, drawn)
      counts[verdict]++
      const place = `${drawn.file}:${described(drawn.text, drawn.mutant)}`
      console.log(`${verdict.padEnd(14)} ${place}`)
      if (verdict === 'survived') survivors.push(place)
    }
  } finally {
    rmSync(copy, { recursive: true })
  }
  console.log(['', 'survivors:', ...survivors].join('\n'))
  const others = `${counts['does not build']} did not build, ${counts.unclear} unclear`
  console.log(`mutate: seed ${SEED}: ${counts.killed} killed, ${counts.survived} survived, ${others}`)
  process.exitCode = counts.unclear === 0 ? 0 : 1
}

main()
