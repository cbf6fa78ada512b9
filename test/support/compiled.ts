// SPDX-License-Identifier: Apache-2.0
/** C compiled as the BPF objects are, for tests that compare TypeScript's view of a struct with the compiler's.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Btf, BtfType } from '#agent/maps/btf.ts'
import { findType, parseBtf, typeById } from '#agent/maps/btf.ts'
import type { MapCodecs, MapDefinition } from '#agent/maps/catalogue.ts'
import { bindMap } from '#agent/maps/catalogue.ts'
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

function clang(source: string, ...flags: readonly string[]): void {
  const common = ['-g', '-O2', '-fno-strict-aliasing', '-target', 'bpf', '-mcpu=v2', '-I', INCLUDE, '-I', ASM, '-x', 'c', '-']
  execFileSync(process.env['CLANG'] ?? 'clang-19', [...common, ...flags], { input: source, stdio: ['pipe', 'pipe', 'pipe'] })
}

/** Throws with the compiler's output. */
export function compileTo(object: string, source: string): void {
  clang(source, '-c', '-o', object)
}

/** Throws with the compiler's output when there is something wrong with it. */
export function checkC(source: string): void {
  clang(source, '-fsyntax-only')
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

/** Type ids of a map's key and value, 0 where it declares none. */
export interface MapTypes {
  readonly keyTypeId: number
  readonly valueTypeId: number
  /** undefined where it declares none */
  readonly maxEntries: number | undefined
}

/** By name of the map. */
export function declaredMaps(btf: Btf): Map<string, MapTypes> {
  const maps = new Map<string, MapTypes>()
  for (const { type } of findType(btf, 'section', '.maps')?.variables ?? []) {
    const variable = typeById(btf, type)
    if (variable.kind !== 'variable') continue
    const definition = typeById(btf, variable.type)
    const target = (field: string): number =>
      definition.kind === 'struct' ? pointee(btf.types, definition.members.find(({ name }) => name === field)?.type) : 0
    const size = btf.types[target('max_entries')]
    const maxEntries = size?.kind === 'array' ? size.length : undefined
    maps.set(variable.name, { keyTypeId: target('key'), valueTypeId: target('value'), maxEntries })
  }
  return maps
}

/** Codecs of a map that the C declares. */
export function bindDeclared<K, V>(definition: MapDefinition<K, V>, btf: Btf): MapCodecs<K, V> {
  const types = declaredMaps(btf).get(definition.name)
  if (types === undefined) throw new Error(`no map ${definition.name}`)
  return bindMap(definition, btf, types)
}

function pointee(types: readonly BtfType[], id: number | undefined): number {
  const type = id === undefined ? undefined : types[id]
  return type?.kind === 'pointer' ? type.type : 0
}
