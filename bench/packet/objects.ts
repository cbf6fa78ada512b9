// SPDX-License-Identifier: Apache-2.0
/** Loads the objects to be measured, and the one that measures them. Layer: bench. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { BpfObject } from '#native'
import type { BpfMap } from '#native'
import type { Btf } from '#agent/maps/btf.ts'
import { findType, parseBtf, typeById } from '#agent/maps/btf.ts'
import { bind } from '#agent/maps/codec.ts'
import type { Codec } from '#agent/maps/codec.ts'
import type { Field } from '#agent/maps/field-kinds.ts'
import { layoutOf } from '#agent/maps/layout.ts'
import { InternalError } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/os/package.ts'

export interface Loaded {
  readonly object: BpfObject
  readonly btf: Btf
}

/** A variable of the read-only data, to be set before load. */
export interface Knob<T> {
  readonly name: string
  readonly field: Field<T>
  readonly value: T
}

export interface LoadOptions<T> {
  readonly knobs?: readonly Knob<T>[]
  /** maps of earlier objects to use instead of new ones, by name */
  readonly share?: ReadonlyMap<string, BpfMap>
  readonly entries?: Readonly<Record<string, number>>
}

/** `path` below the package's root, "bpf/tc.bpf.o"; of the same name in the folder NETPLANE_OBJECTS, if that has
 * one. */
export async function loadObject<T>(path: string, options: LoadOptions<T> = {}): Promise<Loaded> {
  const object = BpfObject.open(objectPath(path))
  const btf = parseBtf(object.btf())
  if (options.knobs !== undefined) object.setRodata(withKnobs(object.rodata(), btf, options.knobs))
  for (const { name } of object.maps()) {
    const shared = options.share?.get(name)
    const entries = options.entries?.[name]
    if (shared !== undefined) object.reuseMap(name, shared)
    else if (entries !== undefined) object.setMaxEntries(name, entries)
  }
  await object.load()
  return { object, btf }
}

/** Codec of a map's value by the object's own BTF. */
export function valueCodec<T>(loaded: Loaded, map: string, field: Field<T>): Codec<T> {
  const spec = loaded.object.maps().find((candidate) => candidate.name === map)
  if (spec === undefined) throw new InternalError(`the object has no map ${map}`)
  return bind(field, layoutOf(loaded.btf, spec.valueTypeId))
}

function withKnobs<T>(rodata: Buffer, btf: Btf, knobs: readonly Knob<T>[]): Buffer {
  const bytes = Buffer.from(rodata)
  const section = findType(btf, 'section', '.rodata')
  for (const knob of knobs) {
    const variable = section?.variables.find((candidate) => typeById(btf, candidate.type).name === knob.name)
    const type = variable === undefined ? undefined : typeById(btf, variable.type)
    if (variable === undefined || type?.kind !== 'variable') throw new InternalError(`the object has no variable ${knob.name} in .rodata`)
    bind(knob.field, layoutOf(btf, type.type)).encode(knob.value, new DataView(bytes.buffer, bytes.byteOffset), variable.offset)
  }
  return bytes
}

function objectPath(path: string): string {
  const given = join(process.env['NETPLANE_OBJECTS'] ?? '', basename(path))
  return process.env['NETPLANE_OBJECTS'] !== undefined && existsSync(given) ? given : join(packageRoot(), path)
}
