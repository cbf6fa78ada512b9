// SPDX-License-Identifier: Apache-2.0
/** `run.ts [CASES]`: the project's own truth tables, and those of a folder of others' if it is there, against every
 * adapter. Layer: test.
 *
 * Others' tables run under their own runners. The adapter of loaded programs needs root, and runs in namespaces of
 * its own. The last line is `N passed, M failed, K skipped`; each number counts questions. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asRecord } from '#lib/kube/parse/fields.ts'
import { FailsafePrograms } from './failsafe-programs.ts'
import { askFailsafes, explainer, failsafeTable } from './failsafes.ts'
import { packetMismatches } from './packet-verdicts.ts'
import { inOwnNamespaces } from '../../testkit/base/namespaces.ts'
import { selectorMismatches } from './selectors.ts'
import { compare, tablesIn } from './tables.ts'
import type { Adapter } from './tables.ts'

const isRoot = process.getuid?.() === 0
const ISOLATED = '--isolated'
const here = fileURLToPath(new URL('.', import.meta.url))
const total = { passed: 0, failed: 0, skipped: 0 }
const MOST_SHOWN = 20

function count(what: string, asked: number, wrong: readonly string[]): void {
  total.passed += asked - wrong.length
  total.failed += wrong.length
  for (const line of wrong.slice(0, MOST_SHOWN)) console.log(`  ${line}`)
  console.log(`${what}: ${asked} asked, ${wrong.length} answered otherwise`)
}

async function own(file: string): Promise<void> {
  const { default: adapter } = (await import(join(here, file))) as { readonly default: Adapter }
  for (const table of tablesIn(join(here, 'cases'))) {
    const { asked, wrong } = await compare(adapter, table)
    count(`${adapter.name}: ${table.id}`, asked, wrong)
  }
}

async function ownFailsafes(): Promise<void> {
  const programs = isRoot ? [await FailsafePrograms.load()] : []
  for (const judge of [explainer, ...programs]) {
    const { asked, wrong } = askFailsafes(judge, failsafeTable)
    count(`${judge.name}: ${failsafeTable.id}`, asked, wrong)
  }
  for (const one of programs) one.close()
}

/** A table or folder of others, by their runner, which says in its last line how it went. */
async function theirs(runner: string, file: string, table: string): Promise<void> {
  const output = await outputOf([runner, join(here, file), table])
  const lines = output.trim().split('\n')
  const last = lines.at(-1) ?? ''
  const said = last.startsWith('{') ? asRecord(JSON.parse(last)) : {}
  const [asked, mismatches] = [Number(said['checks'] ?? said['flows'] ?? Number.NaN), Number(said['mismatches'] ?? Number.NaN)]
  const what = `${file}: ${basename(table)}`
  if (Number.isNaN(asked) || Number.isNaN(mismatches))
    return count(what, 1, [`${basename(runner)} did not come to its end: ${output.slice(-500)}`])
  const shown = lines.filter((line) => line.startsWith('MISMATCH'))
  count(
    what,
    asked,
    Array.from({ length: mismatches }, (_, at) => shown[at] ?? ''),
  )
}

function outputOf(line: readonly string[]): Promise<string> {
  return new Promise((settle, fail) => {
    const child = spawn(process.execPath, ['--conditions=source', ...line], { stdio: ['ignore', 'pipe', 'pipe'] })
    const parts: string[] = []
    child.stdout.on('data', (chunk: Buffer) => parts.push(chunk.toString()))
    const errors: string[] = []
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
    child.on('error', fail)
    child.on('close', () => {
      settle(parts.length === 0 ? errors.join('') : parts.join(''))
    })
  })
}

const SELECTORS = 'selectors.json'
const PACKETS = 'packet-verdicts.json'
const TABLE_FOLDERS = ['network-policy', 'v3-policy', 'admin-policy']

async function others(cases: string, adapters: readonly string[]): Promise<void> {
  for (const file of adapters) {
    for (const folder of TABLE_FOLDERS.filter((name) => existsSync(join(cases, name))))
      await theirs(join(cases, 'run-oracle.mjs'), file, join(cases, folder))
    const conformance = join(cases, 'conformance')
    for (const name of existsSync(conformance) ? readdirSync(conformance).sort() : [])
      await theirs(join(cases, 'run-npapi.mjs'), file, join(conformance, name))
  }
  const read = (name: string) => asRecord(JSON.parse(readFileSync(join(cases, name), 'utf8')))
  if (existsSync(join(cases, SELECTORS))) {
    const { counts, wrong } = selectorMismatches(read(SELECTORS))
    count(
      SELECTORS,
      [...counts.values()].reduce((sum, part) => sum + part, 0),
      wrong,
    )
  }
  if (existsSync(join(cases, PACKETS))) {
    const { packets, wrong } = packetMismatches(read(PACKETS))
    count(`evaluator: ${PACKETS}`, packets, wrong)
  }
}

/** Returns the exit code. */
async function askAll(folder: string | undefined): Promise<number> {
  const all = readdirSync(here).filter((name) => name.endsWith('adapter.mjs'))
  const adapters = all.filter((name) => isRoot || name !== 'kernel-adapter.mjs').sort()
  if (adapters.length < all.length) {
    console.log('not root: the loaded programs have not been asked')
    total.skipped++
  }
  for (const file of adapters) await own(file)
  await ownFailsafes()
  const cases = resolve(folder ?? '')
  if (folder !== undefined && existsSync(cases) && statSync(cases).isDirectory()) await others(cases, adapters)
  else console.log('no folder of other cases: only the project’s own have been asked')
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  return total.failed === 0 ? 0 : 1
}

function askApart(args: readonly string[]): number {
  const line = [...inOwnNamespaces, process.execPath, '--conditions=source', fileURLToPath(import.meta.url), ISOLATED, ...args]
  const [file = '', ...rest] = line
  return spawnSync(file, rest, { stdio: 'inherit' }).status ?? 1
}

const args = process.argv.slice(2)
const apart = isRoot && args[0] !== ISOLATED
process.exitCode = apart ? askApart(args) : await askAll(args.filter((arg) => arg !== ISOLATED)[0])
