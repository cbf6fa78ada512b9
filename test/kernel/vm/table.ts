// SPDX-License-Identifier: Apache-2.0
/** Reads kernels.json: which kernels are tried, and which packages make the guests, each pinned. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pin } from './apt.ts'
import { parseArch } from './arch.ts'
import type { KernelRow, Runner } from './kernel.ts'
import type { Packages } from './userland.ts'

export interface Table extends Packages {
  readonly kernels: readonly KernelRow[]
}

type Json = Readonly<Record<string, unknown>>

export function readTable(): Table {
  const raw: unknown = JSON.parse(readFileSync(join(import.meta.dirname, 'kernels.json'), 'utf8'))
  const table = object(raw)
  return {
    kernels: list(table['kernels']).map((row) => ({
      name: text(row, 'name'),
      runner: runner(text(row, 'runner')),
      pin: pin(object(row['pin'])),
    })),
    userland: list(table['userland']).map(pin),
    sysroot: list(table['sysroot']).map(pin),
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
