// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests one after another and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [lint|unit|kernel|api|oracle|lab|e2e|soak|vm|demo|scale|bench …]`: these only. What failed is named at the end, and the last line is `N passed, M failed, K skipped`:
 * of a long log often no more than the end is seen. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { failed, failureList, ofCommand, ofReport, type Outcome } from './support/failures.ts'
import { inOwnNamespaces } from './support/namespaces.ts'

interface Stage {
  readonly name: string
  /** why it cannot run here; then its absence counts as one skip */
  readonly obstacle?: string | undefined
  run(folder: string): Promise<Outcome>
}

const node = process.execPath
const isRoot = process.getuid?.() === 0
const needsRoot = isRoot ? undefined : 'needs root'

const stages: readonly Stage[] = [
  { name: 'lint', run: () => command(['make', '--no-print-directory', 'lint']) },
  { name: 'unit', run: (folder) => vitest({ project: 'unit', folder, prefix: [] }) },
  { name: 'kernel', obstacle: needsRoot, run: (folder) => vitest({ project: 'kernel', folder, prefix: inOwnNamespaces }) },
  { name: 'api', obstacle: needsRoot, run: (folder) => apiServer(folder) },
  { name: 'oracle', run: () => command(['make', '--no-print-directory', 'test-oracle']) },
  { name: 'lab', obstacle: needsRoot, run: (folder) => vitest({ project: 'lab', folder, prefix: [] }) },
  { name: 'e2e', obstacle: needsRoot, run: (folder) => vitest({ project: 'e2e', folder, prefix: [] }) },
  { name: 'soak', obstacle: needsRoot, run: () => soak() },
  { name: 'vm', obstacle: needsRoot, run: () => command(['test/kernel/run']) },
  { name: 'demo', obstacle: needsRoot, run: () => command([node, 'dist/demo/main.js']) },
  { name: 'scale', obstacle: needsRoot, run: () => scale() },
  { name: 'bench', obstacle: needsRoot, run: () => command([node, 'dist/bench/main.js', '--quick']) },
]

async function main(): Promise<number> {
  const wanted = process.argv.slice(2)
  const chosen = wanted.length === 0 ? stages : stages.filter((stage) => wanted.includes(stage.name))
  if (chosen.length !== (wanted.length || stages.length))
    throw new Error(`no such stage; there are ${stages.map((stage) => stage.name).join(', ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  const total = { passed: 0, failed: 0, skipped: 0 }
  const failures: { readonly stage: string; readonly text: string }[] = []
  try {
    for (const stage of chosen) {
      const outcome = await runStage(stage, folder)
      total.passed += outcome.passed
      total.failed += outcome.failed
      total.skipped += outcome.skipped
      failures.push(...outcome.failures.map((text) => ({ stage: stage.name, text })))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const skippedInCi = process.env['CI'] === 'true' && total.skipped > 0
  if (skippedInCi) console.log('\na skipped test is a failure in CI')
  const sum = `${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`
  console.log(['', ...failureList(failures), sum].join('\n'))
  return total.failed === 0 && !skippedInCi ? 0 : 1
}

/** What it runs is built first, from outside the namespaces: that needs the network. */
async function apiServer(folder: string): Promise<Outcome> {
  const built = await kubernetes()
  return built.failed > 0 ? built : await vitest({ project: 'api', folder, prefix: inOwnNamespaces })
}

async function scale(): Promise<Outcome> {
  const built = await kubernetes()
  return built.failed > 0 ? built : await command([node, 'dist/bench/scale/main.js', '--size', '1k'])
}

async function soak(): Promise<Outcome> {
  const built = await kubernetes()
  return built.failed > 0 ? built : await command([node, 'dist/soak/main.js', '--minutes', '1'])
}

async function kubernetes(): Promise<Outcome> {
  return await command([node, '--conditions=source', 'test/kubernetes/main.ts'])
}

async function runStage(stage: Stage, folder: string): Promise<Outcome> {
  if (stage.obstacle !== undefined) {
    console.log(`\n== ${stage.name}: skipped, ${stage.obstacle}`)
    return { passed: 0, failed: 0, skipped: 1, failures: [] }
  }
  console.log(`\n== ${stage.name}`)
  const began = performance.now()
  const count = await stage.run(folder)
  console.log(
    `== ${stage.name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped in ${((performance.now() - began) / 1000).toFixed(0)} s`,
  )
  return count
}

async function vitest(options: {
  readonly project: string
  readonly folder: string
  readonly prefix: readonly string[]
}): Promise<Outcome> {
  const report = join(options.folder, `${options.project}.json`)
  const line = [...options.prefix, node, '--conditions=source', 'node_modules/vitest/vitest.mjs', 'run', '--project', options.project]
  const { code, output } = await spawned([...line, '--reporter=dot', '--reporter=json', `--outputFile.json=${report}`])
  if (!existsSync(report)) return failed(ofCommand(output, 1).failures.join('\n    '))
  const outcome = ofReport(readFileSync(report, 'utf8'), process.cwd())
  if (code === 0 || outcome.failed > 0) return outcome
  // an error outside of tests
  return { ...outcome, failed: 1, failures: ofCommand(output, code).failures }
}

async function command(line: readonly string[]): Promise<Outcome> {
  const { code, output } = await spawned(line)
  return ofCommand(output, code)
}

/** Its output is shown as it comes, and kept: the two streams in the order of their arrival. */
function spawned(line: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  const [file = '', ...args] = line
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ] as const)
      from.on('data', (chunk: Buffer) => {
        to.write(chunk)
        output += chunk.toString()
      })
    child.on('error', (error) => {
      console.error(error.message)
      resolve({ code: 1, output: output + error.message })
    })
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

process.exitCode = await main()
