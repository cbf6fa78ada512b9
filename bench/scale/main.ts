// SPDX-License-Identifier: Apache-2.0
/** `make scale`: a large cluster in a real API server, the agent beside kube-proxy, and what nodes cost the server.
 * Layer: bench. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, errorText, InternalError } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { readFacts } from '../base/facts.ts'
import { ISOLATION } from '../base/run-part.ts'
import type { Results } from '../base/results.ts'
import { partCommand } from '../base/root.ts'
import { isObjectWith } from '../base/shape.ts'
import { asText, factsLine } from '../base/tables.ts'
import type { ScaleFigures } from './result.ts'
import { scaleControl } from './results.ts'
import { notAhead, scaleTables } from './tables.ts'

/** Services, changes under the agent, changes under kube-proxy. */
const SIZES: Readonly<Record<string, readonly [services: number, ours: number, theirs: number]>> = {
  '1k': [1000, 100, 20],
  '10k': [10_000, 200, 20],
}

/** What it says of its progress is shown as it comes. */
async function measure(size: readonly number[]): Promise<ScaleFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-scale-'))
  try {
    const out = join(folder, 'figures.json')
    const [program, ...args] = [...ISOLATION, ...partCommand('scale/measure'), ...size.map(String), out]
    const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
    await once(child, 'exit')
    if (child.exitCode !== 0) throw new InternalError('measuring at scale has failed')
    const figures: unknown = JSON.parse(readFileSync(out, 'utf8'))
    if (!isObjectWith<ScaleFigures>(figures, ['contenders', 'fanOut', 'lists'])) throw new InternalError('no figures')
    return figures
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { size: { type: 'string', default: '10k' }, out: { type: 'string' } } })
  const size = SIZES[values.size]
  if (size === undefined) throw new ConfigError('--size', `must be ${Object.keys(SIZES).join(' or ')}`)
  const before = loadavg()[0] ?? 0
  const figures = await measure(size)
  const { control, noise } = scaleControl(figures)
  const load = [before, loadavg()[0] ?? 0] as const
  const results: Results = {
    facts: readFacts(),
    packet: {},
    path: {},
    control,
    loss: {},
    noise: { load, packet: {}, path: {}, control: noise },
  }
  process.stdout.write(`${factsLine(results)}\n\n${scaleTables(figures).map(asText).join('\n')}`)
  const out = values.out ?? (values.size === '10k' ? join(packageRoot(), 'bench/results/scale.json') : undefined)
  if (out !== undefined) {
    writeFileSync(out, `${JSON.stringify(results, undefined, 2)}\n`)
    process.stdout.write(`\nwritten to ${out}\n`)
  }
  const behind = notAhead(figures)
  if (behind.length > 0) throw new InternalError(behind.join('; '))
}

try {
  await main()
} catch (thrown) {
  process.stderr.write(`scale: ${errorText(thrown)}\n`)
  process.exitCode = 1
}
