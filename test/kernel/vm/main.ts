// SPDX-License-Identifier: Apache-2.0
/** Boots kernels, each with the payload inside, and adds up what they say. Layer: test. */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { hostArch } from '../../../testkit/base/arch.ts'
import type { Arch } from '../../../testkit/base/arch.ts'
import { bundlePayload } from './bundle.ts'
import { demoEntries, demoTools } from './demo.ts'
import { imageEntries } from './image.ts'
import { runDirect } from './machine/direct.ts'
import type { GuestResult } from './machine/guest.ts'
import { fetchKernel, givenKernel, imageKernel, imagePath } from './kernel.ts'
import type { Kernel, Row } from './kernel.ts'
import { USAGE, parseOptions } from './options.ts'
import type { Options } from './options.ts'
import type { Entry } from './root/entry.ts'
import { rootEntries } from './root/root.ts'
import { readTable } from './table.ts'
import type { Table } from './table.ts'
import { userlandFor } from './root/userland.ts'
import type { Userland } from './root/userland.ts'
import { runVirtme } from './machine/virtme.ts'
import { worksOf } from './works.ts'
import type { Work } from './works.ts'

const TOP = resolve(import.meta.dirname, '../../..')
/** Not in build/, which node-gyp clears. */
const LOGS = join(TOP, '.cache/kernel-vm')
/** Each keeps one core busy. */
const AT_ONCE = 2
const SHOWN_LINES = 40
/** megabytes */
const MEMORY: Readonly<Record<Work, number>> = { tests: 1024, demo: 3072, preflight: 1024 }
/** What a guest has for its work beside its root. */
const MORE: Readonly<Record<Work, (top: string) => Entry[]>> = { tests: () => [], demo: demoEntries, preflight: imageEntries }

/** Everything a run needs that is made before the first machine starts. */
interface Prepared {
  readonly machines: readonly Machine[]
  readonly userlands: ReadonlyMap<Arch, Userland>
  /** as one file of JavaScript each */
  readonly payloads: Readonly<Record<Work, string>>
}

interface Machine {
  readonly kernel: Kernel
  readonly work: Work
}

async function main(options: Options): Promise<boolean> {
  const work = mkdtempSync(join(tmpdir(), 'netplane-kernel-'))
  process.once('exit', () => rmSync(work, { recursive: true, force: true }))
  const prepared = await prepare(options, work)
  if (options.kind === 'fetch') return true
  mkdirSync(LOGS, { recursive: true })
  const started = performance.now()
  const results = await inParallel(prepared.machines, (machine) => runOne({ machine, prepared, dir: work, options }))
  const passed = results.reduce((sum, result) => sum + result.passed, 0)
  const failed = results.reduce((sum, result) => sum + (result.ok ? 0 : Math.max(1, result.failed)), 0)
  const seconds = (performance.now() - started) / 1000
  const cpu = results.reduce((sum, result) => sum + result.cpu, 0)
  console.log(`${results.length} machines, ${AT_ONCE} at a time: ${seconds.toFixed(0)} s, ${cpu.toFixed(0)} s of processor time`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0
}

async function prepare(options: Options, work: string): Promise<Prepared> {
  const table = readTable()
  const file = (name: Work): string => join(work, `${name}.mjs`)
  const payloads = { tests: file('tests'), demo: file('demo'), preflight: file('preflight') }
  for (const name of ['tests', 'demo', 'preflight'] as const) await bundlePayload(options.payloads[name], payloads[name])
  const given = (kernel: Kernel): Machine[] => [{ kernel, work: options.only ?? 'tests' }]
  const machines = options.kind === 'given' ? given(givenKernel(options.kernel)) : await wantedMachines(table, options)
  for (const { kernel, work: what } of machines) if (what === 'demo') requireDemo(kernel)
  const userlands = new Map<Arch, Userland>()
  for (const { arch } of machines.map(({ kernel }) => kernel)) {
    if (!userlands.has(arch)) userlands.set(arch, await userlandFor(arch, TOP, table))
  }
  return { machines, userlands, payloads }
}

type Wanted = Exclude<Options, { readonly kind: 'given' }>

/** Images first, which take the longest. Without their folder the report says that they were not booted. */
async function wantedMachines({ images, kernels }: Table, options: Wanted): Promise<Machine[]> {
  const { names, images: dir } = options
  const known = [...images, ...kernels].map(({ name }) => name)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`no kernel ${unknown}: ${known.join(', ')}`)
  const machines: Machine[] = []
  const isWanted = (row: Row): boolean => worksOf(row, options).length > 0
  const add = (row: Row, kernel: Kernel): void => {
    machines.push(...worksOf(row, options).map((work) => ({ kernel, work })))
  }
  for (const row of images.filter(isWanted)) {
    if (!existsSync(dir)) console.log(`${row.name}: not booted, for there is no folder ${dir}`)
    else if (!row.isSupported && !existsSync(imagePath(row, dir))) console.log(`${row.name}: not booted, for ${dir} has no image of it`)
    else add(row, imageKernel(row, dir))
  }
  for (const row of kernels.filter(isWanted)) add(row, await fetchKernel(row))
  return machines
}

/** The guest gets this machine's tools, and of modules only those that the tests need. */
function requireDemo({ name, arch, modules }: Kernel): void {
  if (arch !== hostArch()) throw new Error(`${name}: the demo runs on this machine's architecture alone, ${hostArch()}`)
  if (modules.length > 0) throw new Error(`${name}: the demo runs on kernels that have all built in, and this one has modules`)
}

interface OneRun {
  readonly machine: Machine
  readonly prepared: Prepared
  readonly dir: string
  readonly options: Options
}

async function runOne({ machine, prepared, dir, options }: OneRun): Promise<GuestResult> {
  const { kernel, work } = machine
  const userland = prepared.userlands.get(kernel.arch)
  if (userland === undefined) throw new Error(`nothing prepared for ${kernel.arch}`)
  const root = await rootEntries({
    userland,
    payload: prepared.payloads[work],
    objectsDir: join(TOP, 'bpf'),
    modules: kernel.modules,
    parts: kernel.parts,
    tools: work === 'demo' ? demoTools() : undefined,
    more: MORE[work](TOP),
  })
  const name = work === 'tests' ? kernel.name : `${kernel.name}-${work}`
  const own = join(dir, name)
  mkdirSync(own)
  const log = join(LOGS, `${name}.log`)
  const run = kernel.runner === 'direct' ? runDirect : runVirtme
  const result = await run({
    kernel,
    root,
    work: own,
    token: randomUUID(),
    log,
    timeout: options.timeouts[work],
    memory: MEMORY[work],
  })
  rmSync(own, { recursive: true })
  report(machine, result, log)
  return result
}

function report({ kernel, work }: Machine, result: GuestResult, log: string): void {
  const tally = result.reason ?? `${result.passed} passed, ${result.failed} failed`
  console.log(
    `${kernel.name}${work === 'tests' ? '' : `, the ${work},`} by ${kernel.runner}: ${tally} in ${result.seconds.toFixed(0)} s, ${result.cpu.toFixed(0)} s of processor time`,
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
