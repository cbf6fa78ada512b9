// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [STAGE …]` runs these only, such as "unit" or "loss"; `run.ts all` runs those too that are outside of the
 * gate. What failed is named at the end, and the last line is `N passed, M failed, K skipped`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cgroupObstacle } from '../testkit/kubernetes/cgroups.ts'
import { command, vitest } from './runner/commands.ts'
import type { Outcome } from './runner/failures.ts'
import { withSanitizedAddon } from './native/sanitized.ts'
import { inOwnNamespaces } from '../testkit/base/namespaces.ts'
import { runStages, type Part, type Print, type Stage } from './runner/stages.ts'

const node = process.execPath
const needsRoot = process.getuid?.() === 0 ? undefined : 'needs root'
/** Tests of the lab that count what is lost or late while something happens, take silence for an answer, or compare
 * the machine before and after. */
const ALONE = [
  ...['processes/agents', 'upstream/networking', 'hand-over', 'processes/kill', 'lab'],
  ...['net/forwarding', 'net/node-life', 'policy', 'services', 'traffic/traffic'],
].map((name) => `test/lab/${name}.test.ts`)

/** Files of the lab that measure, or that take long for what they find: outside of the gate. */
const SLOW = ['image-arm64', 'upstream/rates'].map((name) => `test/lab/${name}.test.ts`)

/** The longest first: then the lanes end together. */
function stagesIn(folder: string): readonly Stage[] {
  const kernel = (shard: string): Part => {
    return (print) => vitest(print, { project: 'kernel', folder, prefix: inOwnNamespaces, shard })
  }
  const api = (shard: string): Part => {
    return (print) => withKubernetes(print, () => vitest(print, { project: 'api', folder, prefix: inOwnNamespaces, shard }))
  }
  const lab = (shard: string): Part => {
    return (print) => vitest(print, { project: 'lab', folder, except: [...ALONE, ...SLOW], shard })
  }
  const sanitized: Part = (print) => {
    return vitest(print, { project: 'kernel', folder, prefix: withSanitizedAddon, only: ['test/native/'] })
  }
  const e2e: Part = (print) => withKubernetes(print, () => vitest(print, { project: 'e2e', folder }))
  return [
    { name: 'e2e', obstacle: needsRoot ?? cgroupObstacle(), inLanes: true, parts: [e2e] },
    { name: 'kernel', obstacle: needsRoot, inLanes: true, parts: shards(4).map(kernel) },
    { name: 'lab', obstacle: needsRoot, inLanes: true, parts: shards(4).map(lab) },
    { name: 'api', obstacle: needsRoot, inLanes: true, parts: shards(2).map(api) },
    { name: 'sanitized', obstacle: needsRoot, inLanes: true, parts: [sanitized] },
    { name: 'unit', inLanes: true, parts: [(print) => vitest(print, { project: 'unit', folder })] },
    { name: 'lint', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'lint'])] },
    { name: 'oracle', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'test-oracle'])] },
    { name: 'fuzz', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'fuzz', 'SECONDS=5'])] },
    { name: 'loss', obstacle: needsRoot, parts: [(print) => vitest(print, { project: 'lab', folder, only: ALONE })] },
    { name: 'vm', obstacle: needsRoot, inLanes: true, parts: [(print) => command(print, ['test/kernel/run'])] },
    { name: 'demo', obstacle: needsRoot, parts: [(print) => command(print, [node, 'dist/demo/main.js'])] },
    { name: 'slow', obstacle: needsRoot, isOutside: true, parts: [(print) => vitest(print, { project: 'lab', folder, only: SLOW })] },
    { name: 'soak', obstacle: needsRoot, isOutside: true, parts: [ofKubernetes('dist/soak/main.js', '--minutes', '1')] },
    { name: 'scale', obstacle: needsRoot, isOutside: true, parts: [ofKubernetes('dist/bench/scale/main.js', '--size', '1k')] },
    { name: 'bench', obstacle: needsRoot, isOutside: true, parts: [(print) => command(print, [node, 'dist/bench/main.js', '--quick'])] },
    { name: 'kernels', obstacle: needsRoot, isOutside: true, parts: [(print) => command(print, ['test/kernel/run', '--all'])] },
  ]
}

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  try {
    const stages = stagesIn(folder)
    return await runStages(chosenOf(stages, wanted))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Without names those of the gate. Throws when a name is none of a stage. */
function chosenOf(stages: readonly Stage[], wanted: readonly string[]): readonly Stage[] {
  if (wanted.length === 0) return stages.filter(({ isOutside }) => isOutside !== true)
  if (wanted.length === 1 && wanted[0] === 'all') return stages
  const chosen = stages.filter(({ name }) => wanted.includes(name))
  if (chosen.length !== wanted.length) throw new Error(`no such stage; there are ${stages.map(({ name }) => name).join(', ')}`)
  return chosen
}

function shards(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${index + 1}/${count}`)
}

function ofKubernetes(...line: readonly string[]): Part {
  return (print) => withKubernetes(print, () => command(print, [node, ...line]))
}

/** What it runs is built first, from outside the namespaces: that needs the network. Two at once wait for each
 * other. */
async function withKubernetes(print: Print, then: () => Promise<Outcome>): Promise<Outcome> {
  const built = await command(print, [
    ...['flock', join(tmpdir(), 'netplane-kubernetes.lock')],
    ...[node, '--conditions=source', 'testkit/kubernetes/main.ts'],
  ])
  return built.failed > 0 ? built : await then()
}

process.exitCode = await main(process.argv.slice(2))
