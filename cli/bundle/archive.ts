// SPDX-License-Identifier: Apache-2.0
/** What was collected, as one file with an index. Layer: cli. */
import { accessSync, constants, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { systemClock } from '#lib/base/clock.ts'
import { ConfigError, errorCode, errorText } from '#lib/base/errors.ts'
import type { CommandResult } from '../command-result.ts'
import { write } from '../standard-output.ts'
import { collect, isMissing, type Bounds, type Collected, type Part } from './collect.ts'
import { tarOf } from './tar.ts'

export interface ArchiveOrder {
  /** undefined: named after what it is of, and the time */
  readonly output: string | undefined
  readonly json: boolean
}

export interface Archive {
  /** what its name begins with, unless another was asked for */
  readonly name: string
  /** of the index, after the time it was taken at */
  readonly heading: (at: string) => readonly string[]
  readonly bounds: Bounds
  /** found out once it is known that the file can be written */
  readonly parts: () => readonly Part[] | Promise<readonly Part[]>
}

const STANDARD_OUTPUT = '-'

/** Throws where the file cannot be written; the archive lists what cannot be read. */
export async function archiveCommand(order: ArchiveOrder, archive: Archive): Promise<CommandResult> {
  const at = new Date(systemClock.wall())
  const file = order.output ?? `${archive.name}-${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}.tar.gz`
  // before a minute of reading
  if (file !== STANDARD_OUTPUT) mustBeWritable(dirname(file))
  const collected = await collect(await archive.parts(), archive.bounds, systemClock)
  const bytes = gzipSync(bundleOf(collected, { at, heading: archive.heading(at.toISOString()) }))
  if (file === STANDARD_OUTPUT) {
    await write(bytes)
    return { text: '', warnings: '', exitCode: 0 }
  }
  // a name that was not asked for may be a link that another user has laid in a folder for all
  writeFileSync(file, bytes, { mode: 0o600, flag: order.output === undefined ? 'wx' : 'w' })
  const missing = collected.filter(isMissing)
  const text = order.json
    ? `${JSON.stringify({ file, bytes: bytes.length, parts: collected.map(({ text, ...one }) => ({ ...one, bytes: Buffer.byteLength(text) })) }, undefined, 2)}\n`
    : `${file}: ${collected.length - missing.length} parts, ${bytes.length} bytes; ${missing.length} could not be read (README.txt says why)\n`
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
export function bundleOf(
  collected: readonly Collected[],
  { at, heading }: { readonly at: Date; readonly heading: readonly string[] },
): Buffer {
  const texts = [{ name: 'README.txt', text: indexOf(collected, heading) }, ...collected.filter(({ text }) => text !== '')]
  return tarOf(
    texts.map((one) => ({ name: `netplane-bundle/${one.name}`, bytes: Buffer.from(one.text) })),
    at.getTime() / 1000,
  )
}

function indexOf(collected: readonly Collected[], heading: readonly string[]): string {
  const width = Math.max(...collected.map(({ name }) => name.length))
  const lines = collected.map(({ name, about, text, remark }) => {
    const size = text === '' ? '' : ` [${Buffer.byteLength(text)} bytes]`
    return `${name.padEnd(width)}  ${about}${size}${remark === '' ? '' : ` -- ${remark}`}`
  })
  return [...heading, '', ...lines, ''].join('\n')
}
