// SPDX-License-Identifier: Apache-2.0
/** Reads kernels.json: which kernels are tried, and which packages make the guests, each pinned. The slowest first:
 * then two lanes end together. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pin } from './root/apt.ts'
import { parseArch } from '../../../testkit/base/arch.ts'
import { PARTS, type ImageRow, type KernelRow, type Parts, type Row, type Runner } from './kernel.ts'
import type { Packages } from './root/userland.ts'

export interface Table extends Packages {
  /** of a folder beside the repository that need not be there */
  readonly images: readonly ImageRow[]
  readonly kernels: readonly KernelRow[]
}

type Json = Readonly<Record<string, unknown>>

export function readTable(): Table {
  const raw: unknown = JSON.parse(readFileSync(join(import.meta.dirname, 'kernels.json'), 'utf8'))
  const table = object(raw)
  return {
    images: list(table['images']).map((row) => ({
      ...uses(row),
      name: text(row, 'name'),
      arch: parseArch(text(row, 'arch')),
      sha256: text(row, 'sha256'),
    })),
    kernels: list(table['kernels']).map(kernel),
    userland: list(table['userland']).map(pin),
    sysroot: list(table['sysroot']).map(pin),
  }
}

function kernel(row: Json): KernelRow {
  const pins = list(row['pins']).map(pin)
  const arch = pins[0]?.arch
  if (arch === undefined) throw new Error(`kernels.json: ${text(row, 'name')} has no pin`)
  return {
    ...uses(row),
    name: text(row, 'name'),
    arch,
    runner: runner(text(row, 'runner')),
    parts: parts(row['parts']),
    modules: Array.isArray(row['modules']) ? row['modules'].map(String) : [],
    pins,
  }
}

function uses(row: Json): Pick<Row, 'gate' | 'demo' | 'preflight' | 'isSupported'> {
  const is = (word: string): boolean => row[word] === true
  return {
    gate: is('gate'),
    demo: is('demo'),
    preflight: is('preflight'),
    isSupported: !is('unsupported'),
  }
}

function pin(row: Json): Pin {
  return {
    package: text(row, 'package'),
    suite: text(row, 'suite'),
    arch: parseArch(text(row, 'arch')),
    version: text(row, 'version'),
    sha256: text(row, 'sha256'),
    ...(row['current'] === undefined ? {} : { current: text(row, 'current') }),
  }
}

function runner(word: string): Runner {
  if (word === 'direct' || word === 'virtme-ng') return word
  throw new Error(`kernels.json: unknown runner ${word}`)
}

function parts(word: unknown): Parts {
  const known = PARTS.find((one) => one === (word ?? 'all'))
  if (known !== undefined) return known
  throw new Error(`kernels.json: unknown parts ${JSON.stringify(word)}`)
}

function list(value: unknown): Json[] {
  if (!Array.isArray(value)) throw new Error('kernels.json: not a list')
  return value.map(object)
}

function object(value: unknown): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('kernels.json: not an object')
  return Object.fromEntries(Object.entries(value))
}

function text(row: Json, key: string): string {
  const value = row[key]
  if (typeof value !== 'string') throw new Error(`kernels.json: ${key} is not a text`)
  return value
}
