#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** `make faults`: is the gate red for each fault of the list, and never unsteady? Each fault is made in a copy of the
 * last commit; then the runner runs the stage that is to find it, or one test file of that stage. Exit code 1 when a
 * fault was not found, or the stage was red without any fault. Needs root. Layer: test. */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { copyOfTree, makeIn } from '../support/copy-of-tree.ts'
import { FAULTS, type Fault } from './faults.ts'
import { verdictOf } from './verdict.ts'

const BUILT = ['all', 'unit-deps', 'build/sanitized/netplane_native.node', 'bench/tools/traffic']

function runStage(copy: string, { stage, test }: Fault): { readonly status: number | null; readonly output: string } {
  const words = ['--conditions=source', 'test/run.ts', stage, ...(test === undefined ? [] : [test])]
  // the copy lies elsewhere
  const env = { ...process.env, KERNELS: process.env['KERNELS'] ?? join(packageRoot(), '../shared/kernels') }
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: copy, env, encoding: 'utf8', maxBuffer: 1 << 30 })
  return { status, output: stdout + stderr }
}

/** What the runner said of the fault: see {@link verdictOf}. */
function judge(copy: string, fault: Fault): string {
  const path = join(copy, fault.file)
  const text = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    text.replace(fault.from, () => fault.to),
  )
  try {
    // a fault of types builds no bundle; its stage says so
    if (!makeIn(copy, ...BUILT) && fault.stage !== 'lint') return 'does not build'
    return verdictOf(fault, runStage(copy, fault))
  } finally {
    writeFileSync(path, text)
  }
}

function main(): void {
  const wanted = FAULTS.filter(({ name }) => name.includes(process.env['T'] ?? ''))
  const copy = copyOfTree(packageRoot(), 'faults')
  let found = 0
  try {
    makeIn(copy, ...BUILT)
    for (const fault of wanted) {
      const verdict = judge(copy, fault)
      if (verdict === 'found') found++
      console.log(`${verdict.padEnd(10)} ${fault.stage.padEnd(10)} ${fault.name}`)
    }
  } finally {
    rmSync(copy, { recursive: true })
  }
  console.log(`${found} passed, ${wanted.length - found} failed`)
  process.exitCode = found === wanted.length ? 0 : 1
}

main()
