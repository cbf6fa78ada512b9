// SPDX-License-Identifier: Apache-2.0
/** `node bundle`: one file with everything about a node that helps another engineer to find out what is wrong.
 * Layer: cli. */
import { accessSync, constants, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { systemClock } from '#lib/base/clock.ts'
import { ConfigError, errorCode, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import type { BundleOrder } from '../args.ts'
import type { CommandResult } from '../command-result.ts'
import { write } from '../standard-output.ts'
import { agentParts } from './agent-parts.ts'
import { collect, type Bounds, type Collected, type Part } from './collect.ts'
import { factParts } from './facts.ts'
import { mapParts } from './maps.ts'
import { netParts } from './net-parts.ts'
import { tarOf } from './tar.ts'

/** Half a hundred parts: 100 MB unpacked at the very most, mostly less than one. */
const BOUNDS: Bounds = { partMs: 10_000, wholeMs: 60_000, partBytes: 2 << 20 }

export function bundleParts(order: Pick<BundleOrder, 'agent' | 'stateDir' | 'keepDir' | 'log' | 'pins'>): Part[] {
  return [...factParts(), ...agentParts(order), ...mapParts(order.pins), ...netParts()]
}

const STANDARD_OUTPUT = '-'

/** Throws where the file cannot be written; the bundle lists what cannot be read. */
export async function bundleCommand(order: BundleOrder): Promise<CommandResult> {
  const at = new Date(systemClock.wall())
  const name = `netplane-bundle-${hostname()}-${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  const file = order.output ?? `${name}.tar.gz`
  // before a minute of reading
  if (file !== STANDARD_OUTPUT) mustBeWritable(dirname(file))
  const collected = await collect(bundleParts(order), BOUNDS, systemClock)
  const archive = gzipSync(bundleOf(collected, at))
  if (file === STANDARD_OUTPUT) {
    await write(archive)
    return { text: '', warnings: '', exitCode: 0 }
  }
  // a name that was not asked for may be a link that another user has laid in a folder for all
  writeFileSync(file, archive, { mode: 0o600, flag: order.output === undefined ? 'wx' : 'w' })
  const missing = collected.filter(({ text }) => text === '')
  const text = order.json
    ? `${JSON.stringify({ file, bytes: archive.length, parts: collected.map(({ text, ...one }) => ({ ...one, bytes: Buffer.byteLength(text) })) }, undefined, 2)}\n`
    : `${file}: ${collected.length - missing.length} parts, ${archive.length} bytes; ${missing.length} could not be read (README.txt says why)\n`
  return { text, warnings: '', exitCode: 0 }
}

function mustBeWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK)
  } catch (thrown) {
    throw new ConfigError(
      '--output',
      `${folder} cannot be written to (${errorCode(thrown) ?? errorText(thrown)}): name a file elsewhere, or "-"`,
    )
  }
}

/** One folder, whose name is short: a node's may be long. First of all what is in it. */
export function bundleOf(collected: readonly Collected[], at: Date): Buffer {
  const texts = [{ name: 'README.txt', text: indexOf(collected, at) }, ...collected.filter(({ text }) => text !== '')]
  return tarOf(
    texts.map((one) => ({ name: `netplane-bundle/${one.name}`, bytes: Buffer.from(one.text) })),
    at.getTime() / 1000,
  )
}

function indexOf(collected: readonly Collected[], at: Date): string {
  const width = Math.max(...collected.map(({ name }) => name.length))
  const lines = collected.map(({ name, about, text, remark }) => {
    const size = text === '' ? '' : ` [${Buffer.byteLength(text)} bytes]`
    return `${name.padEnd(width)}  ${about}${size}${remark === '' ? '' : ` -- ${remark}`}`
  })
  return [
    `Netplane ${packageVersion()}: node ${hostname()}, ${at.toISOString()}.`,
    'Taken by "netplanectl node bundle". Tokens, keys, passwords and certificates are left out; addresses, names of',
    'objects and policies are not. Maps and programs are as the kernel has them, whether an agent runs or not.',
    '',
    ...lines,
    '',
  ].join('\n')
}
