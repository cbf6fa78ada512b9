// SPDX-License-Identifier: Apache-2.0
/** C compiled as the BPF objects are, for tests that compare TypeScript's view of a struct with the compiler's. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Btf } from '#agent/maps/btf.ts'
import { parseBtf } from '#agent/maps/btf.ts'
import { elfSections } from './elf.ts'

/** where our headers are */
export const INCLUDE = new URL('../../bpf/include/', import.meta.url).pathname
/** where Debian keeps asm/types.h */
const ASM = `/usr/include/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`

export interface Compiled {
  readonly btf: Btf
  /** bytes of a section; throws when there is none of that name */
  readonly section: (name: string) => Buffer
}

/** Throws with the compiler's output. */
export function compileTo(object: string, source: string): void {
  const flags = ['-g', '-O2', '-target', 'bpf', '-mcpu=v2', '-I', INCLUDE, '-I', ASM, '-x', 'c', '-c', '-', '-o', object]
  execFileSync(process.env['CLANG'] ?? 'clang-19', flags, { input: source, stdio: ['pipe', 'pipe', 'pipe'] })
}

/** As {@link compileTo}, for what is only looked at. */
export function compileC(source: string): Compiled {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-c-'))
  try {
    const object = join(folder, 'test.o')
    compileTo(object, source)
    return asCompiled(readFileSync(object))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** An object that is built already: "workload". */
export function builtObject(name: string): Compiled {
  return asCompiled(readFileSync(new URL(`../../bpf/${name}.bpf.o`, import.meta.url)))
}

function asCompiled(file: Buffer): Compiled {
  const sections = elfSections(file)
  const section = (name: string): Buffer => {
    const bytes = sections.get(name)
    if (bytes === undefined) throw new Error(`no section ${name} in the object`)
    return bytes
  }
  return { btf: parseBtf(section('.BTF')), section }
}
