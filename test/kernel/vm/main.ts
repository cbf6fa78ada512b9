// SPDX-License-Identifier: Apache-2.0
/** Boots kernels, each with the payload inside, and adds up what they say. Layer: test. */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import type { Arch } from './arch.ts'
import { bundlePayload } from './bundle.ts'
import { runDirect } from './direct.ts'
import type { GuestResult } from './guest.ts'
import { fetchKernel, givenKernel, imageKernel } from './kernel.ts'
import type { Kernel } from './kernel.ts'
import { USAGE, parseOptions } from './options.ts'
import type { Options } from './options.ts'
import { rootEntries } from './root.ts'
import { readTable } from './table.ts'
import type { Table } from './table.ts'
import { userlandFor } from './userland.ts'
import type { Userland } from './userland.ts'
import { runVirtme } from './virtme.ts'

const TOP = resolve(import.meta.dirname, '../../..')
/** Not in build/, which node-gyp clears. */
const LOGS = join(TOP, '.cache/kernel-vm')
/** Each keeps one core busy. */
const AT_ONCE = 2
const SHOWN_LINES = 40

/** Everything a run needs that is made before the first machine starts. */
interface Prepared {
  readonly kernels: readonly Kernel[]
  readonly userlands: ReadonlyMap<Arch, Userland>
  readonly payload: string
}

async function main(options: Options): Promise<boolean> {
  const work = mkdtempSync(join(tmpdir(), 'netplane-kernel-'))
  process.once('exit', () => rmSync(work, { recursive: true, force: true }))
  const prepared = await prepare(options, work)
  if (options.kind === 'fetch') return true
  mkdirSync(LOGS, { recursive: true })
  const started = performance.now()
  const results = await inParallel(prepared.kernels, (kernel) => runOne({ kernel, prepared, work, options }))
  const passed = results.reduce((sum, result) => sum + result.passed, 0)
  const failed = results.reduce((sum, result) => sum + (result.ok ? 0 : Math.max(1, result.failed)), 0)
  const seconds = (performance.now() - started) / 1000
  const cpu = results.reduce((sum, result) => sum + result.cpu, 0)
  console.log(`${results.length} kernels, ${AT_ONCE} at a time: ${seconds.toFixed(0)} s, ${cpu.toFixed(0)} s of processor time`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0
}

async function prepare(options: Options, work: string): Promise<Prepared> {
  const table = readTable()
  const payload = join(work, 'payload.mjs')
  await bundlePayload(options.payload, payload)
  const kernels = options.kind === 'given' ? [givenKernel(options.kernel)] : await wantedKernels(table, options)
  const userlands = new Map<Arch, Userland>()
  for (const { arch } of kernels) {
    if (!userlands.has(arch)) userlands.set(arch, await userlandFor(arch, TOP, table))
  }
  return { kernels, userlands, payload }
}

type Wanted = Exclude<Options, { readonly kind: 'given' }>

/** Images first, which take the longest. Where their folder is not there, it is said that they were not booted. */
async function wantedKernels({ images, kernels }: Table, { names, all, images: dir }: Wanted): Promise<Kernel[]> {
  const known = [...images, ...kernels].map(({ name }) => name)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`no kernel ${unknown}: ${known.join(', ')}`)
  const isWanted = ({ name, soak }: { readonly name: string; readonly soak: boolean }): boolean =>
    names.length > 0 ? names.includes(name) : all || !soak
  const wanted: Kernel[] = []
  for (const row of images.filter(isWanted)) {
    if (existsSync(dir)) wanted.push(imageKernel(row, dir))
    else console.log(`${row.name}: not booted, for there is no folder ${dir}`)
  }
  for (const row of kernels.filter(isWanted)) wanted.push(await fetchKernel(row))
  return wanted
}

interface OneRun {
  readonly kernel: Kernel
  readonly prepared: Prepared
  readonly work: string
  readonly options: Options
}

async function runOne({ kernel, prepared, work, options }: OneRun): Promise<GuestResult> {
  const userland = prepared.userlands.get(kernel.arch)
  if (userland === undefined) throw new Error(`nothing prepared for ${kernel.arch}`)
  const root = await rootEntries({
    userland,
    payload: prepared.payload,
    objectsDir: join(TOP, 'bpf'),
    modules: kernel.modules,
    parts: kernel.parts,
  })
  const own = join(work, kernel.name)
  mkdirSync(own)
  const log = join(LOGS, `${kernel.name}.log`)
  const run = kernel.runner === 'direct' ? runDirect : runVirtme
  const result = await run({ kernel, root, work: own, token: randomUUID(), log, timeout: options.timeout })
  rmSync(own, { recursive: true })
  report(kernel, result, log)
  return result
}

function report(kernel: Kernel, result: GuestResult, log: string): void {
  const tally = result.reason ?? `${result.passed} passed, ${result.failed} failed`
  console.log(
    `${kernel.name} by ${kernel.runner}: ${tally} in ${result.seconds.toFixed(0)} s, ${result.cpu.toFixed(0)} s of processor time`,
  )
  if (kernel.note !== undefined) console.log(`  note: ${kernel.note}`)
  for (const line of result.lines.slice(0, SHOWN_LINES)) console.log(`  ${line}`)
  if (result.lines.length > SHOWN_LINES) console.log(`  and ${result.lines.length - SHOWN_LINES} more lines`)
  if (!result.ok) console.log(`  its console: ${relative(process.cwd(), log)}`)
}

/** Results in the order of the items. */
async function inParallel<T, R>(items: readonly T[], job: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const queue = [...items.entries()]
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) results[next[0]] = await job(next[1])
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

// An end by a signal is an ordinary exit, so that no emulator and no directory stays behind.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
try {
  const options = parseOptions(process.argv.slice(2), TOP)
  if (options === undefined) console.log(USAGE)
  else process.exitCode = (await main(options)) ? 0 : 1
} catch (error) {
  console.error(`test/kernel/run: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 2
}
