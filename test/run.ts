// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [STAGE …]`: these only, as "unit" or "e2e-loss". What failed is named at the end, and the last line is
 * `N passed, M failed, K skipped`. */
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
  ...['processes/agents', 'upstream/networking', 'hand-over', 'mode', 'processes/kill', 'lab'],
  ...['net/forwarding', 'net/node-life', 'policy', 'services', 'traffic/traffic'],
].map((name) => `test/lab/${name}.test.ts`)
/** The same of a real cluster. */
const ALONE_IN_CLUSTER = ['dataplane-mode', 'operator/ipv6', 'operator/switch'].map((name) => `test/cluster/${name}.test.ts`)

/** The longest first: then the lanes end together. */
function stagesIn(folder: string): readonly Stage[] {
  const kernel = (shard: string): Part => {
    return (print) => vitest(print, { project: 'kernel', folder, prefix: inOwnNamespaces, shard })
  }
  const api = (shard: string): Part => {
    return (print) => withKubernetes(print, () => vitest(print, { project: 'api', folder, prefix: inOwnNamespaces, shard }))
  }
  const lab = (shard: string): Part => {
    return (print) => vitest(print, { project: 'lab', folder, except: ALONE, shard })
  }
  const sanitized: Part = (print) => {
    return vitest(print, { project: 'kernel', folder, prefix: withSanitizedAddon, only: ['test/native/'] })
  }
  const e2e = (files: { readonly only?: readonly string[]; readonly except?: readonly string[] }): Part => {
    return (print) => withKubernetes(print, () => vitest(print, { project: 'e2e', folder, ...files }))
  }
  return [
    { name: 'e2e', obstacle: needsRoot ?? cgroupObstacle(), inLanes: true, parts: [e2e({ except: ALONE_IN_CLUSTER })] },
    { name: 'kernel', obstacle: needsRoot, inLanes: true, parts: shards(4).map(kernel) },
    { name: 'lab', obstacle: needsRoot, inLanes: true, parts: shards(4).map(lab) },
    { name: 'api', obstacle: needsRoot, inLanes: true, parts: shards(3).map(api) },
    { name: 'sanitized', obstacle: needsRoot, inLanes: true, parts: [sanitized] },
    { name: 'unit', inLanes: true, parts: [(print) => vitest(print, { project: 'unit', folder })] },
    { name: 'lint', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'lint'])] },
    { name: 'oracle', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'test-oracle'])] },
    { name: 'fuzz', inLanes: true, parts: [(print) => command(print, ['make', '--no-print-directory', 'fuzz', 'SECONDS=5'])] },
    { name: 'loss', obstacle: needsRoot, parts: [(print) => vitest(print, { project: 'lab', folder, only: ALONE })] },
    { name: 'e2e-loss', obstacle: needsRoot ?? cgroupObstacle(), parts: [e2e({ only: ALONE_IN_CLUSTER })] },
    { name: 'soak', obstacle: needsRoot, parts: [ofKubernetes('dist/soak/main.js', '--minutes', '1')] },
    { name: 'vm', obstacle: needsRoot, inLanes: true, parts: [(print) => command(print, ['test/kernel/run'])] },
    // of its figures only who is ahead counts here, and mostly it waits
    { name: 'scale', obstacle: needsRoot, inLanes: true, parts: [ofKubernetes('dist/bench/scale/main.js', '--size', '1k')] },
    { name: 'demo', obstacle: needsRoot, parts: [(print) => command(print, [node, 'dist/demo/main.js'])] },
    { name: 'bench', obstacle: needsRoot, parts: [(print) => command(print, [node, 'dist/bench/main.js', '--quick'])] },
  ]
}

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  try {
    const stages = stagesIn(folder)
    const chosen = wanted.length === 0 ? stages : stages.filter((stage) => wanted.includes(stage.name))
    if (chosen.length !== (wanted.length || stages.length))
      throw new Error(`no such stage; there are ${stages.map((stage) => stage.name).join(', ')}`)
    return await runStages(chosen)
  } finally {
    rmSync(folder, { recursive: true })
  }
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
