// SPDX-License-Identifier: Apache-2.0
/** What the addon's tests share: test programs compiled, codes of errors, a bpffs folder. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BpfObject } from '#native'
import { BpfMap } from '#native'

/** These tests load programs. They expect network and mount namespaces of their own, with a bpffs at /sys/fs/bpf. */
export const isRoot = process.getuid?.() === 0

/** A pin folder of this process. */
export const PINS = `/sys/fs/bpf/native-test-${process.pid}`

export const MAP = {
  hash: 1,
  array: 2,
  progArray: 3,
  percpuHash: 5,
  percpuArray: 6,
  lruHash: 9,
  lpmTrie: 11,
  hashOfMaps: 13,
  queue: 22,
} as const
export const PROGRAM = { schedCls: 3, xdp: 6 } as const

const objects = new Map<string, string>()

/** Path of test/native/progs/<name>.bpf.c as an object, compiled once a test file. */
export function compiled(name: string): string {
  const path = objects.get(name) ?? compile(name)
  objects.set(name, path)
  return path
}

function compile(name: string): string {
  const folder = fileURLToPath(new URL('../../build/test-programs', import.meta.url))
  const source = fileURLToPath(new URL(`progs/${name}.bpf.c`, import.meta.url))
  const path = join(folder, `${name}.bpf.o`)
  mkdirSync(folder, { recursive: true })
  const headers = `/usr/include/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`
  execFileSync('clang-19', ['-g', '-O2', '-target', 'bpf', '-mcpu=v2', '-Wall', '-Werror', `-I${headers}`, '-c', source, '-o', path])
  return path
}

export function makePins(): void {
  mkdirSync(PINS, { recursive: true })
}

export function removePins(): void {
  rmSync(PINS, { recursive: true, force: true })
}

/** The code of what `call` throws; "none" when it does not throw. */
export function codeOf(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return errorCode(error)
  }
  return 'none'
}

export function errorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return `no code: ${String(error)}`
}

export function u32(...values: readonly number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer)
}

/** Loads only the named programs. */
export async function loadOnly(object: BpfObject, names: readonly string[]): Promise<void> {
  for (const program of object.programs()) object.setAutoload(program.name, names.includes(program.name))
  await object.load()
}

export interface MapOptions {
  readonly type: number
  readonly keySize?: number
  readonly valueSize?: number
  readonly maxEntries?: number
  readonly flags?: number
}

export function createMap(options: MapOptions): BpfMap {
  return BpfMap.create({ name: 'native_test', keySize: 4, valueSize: 8, maxEntries: 64, ...options })
}

/** A directory under the cgroup2 mount, for `use`. */
export async function withCgroup(use: (path: string) => void | Promise<void>): Promise<void> {
  const mount = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .find((fields) => fields[2] === 'cgroup2')?.[1]
  if (mount === undefined) throw new Error('no cgroup2 mount')
  const path = join(mount, `native-test-${process.pid}`)
  mkdirSync(path)
  try {
    await use(path)
  } finally {
    execFileSync('rmdir', [path])
  }
}
