// SPDX-License-Identifier: Apache-2.0
/** A shape bound to a layout: encode and decode. An edge: `as` stands where bytes become typed values.
 * Layer: agent/maps. */
import { LayoutError } from '#lib/base/errors.ts'
import type { Field, Kind } from './field-kinds.ts'
import type { Layout } from './layout.ts'
import { isPadding, layoutText, refuseHoles } from './layout.ts'
import type { FieldCodec } from './field-codecs.ts'
import { scalarCodec } from './field-codecs.ts'

/** `size` bytes from `at` on are all written, padding as zeros. Throws LayoutError, naming the field, for a value
 * that does not fit. */
export interface Codec<T> {
  readonly size: number
  encode(value: T, view: DataView, at: number): void
  decode(view: DataView, at: number): T
}

/** Throws LayoutError on any difference: a missing or extra field, another size, sign or byte order; naming both
 * sides. */
export function bind<T>(field: Field<T>, layout: Layout): Codec<T> {
  const part = partOf(field.kind, layout, layoutText(layout))
  const zero = uncovered(part, layout.size)
  return {
    size: layout.size,
    encode(value, view, at) {
      for (const offset of zero) view.setUint8(at + offset, 0)
      part.put(view, at, value)
    },
    decode: (view, at) => part.get(view, at) as T,
  }
}

/** As {@link bind}; refuses holes as well, for a key is compared byte by byte. */
export function bindKey<T>(field: Field<T>, layout: Layout): Codec<T> {
  refuseHoles(layout)
  return bind(field, layout)
}

function partOf(kind: Kind, layout: Layout, where: string): FieldCodec {
  switch (kind.kind) {
    case 'struct':
      return structPart(kind, layout, where)
    case 'array':
      return arrayPart(kind, layout, where)
    default:
      return scalarCodec(kind, layout, where)
  }
}

function structPart(kind: Extract<Kind, { kind: 'struct' }>, layout: Layout, where: string): FieldCodec {
  if (layout.kind !== 'struct' || layout.name !== kind.name)
    throw new LayoutError(where, `the shape has struct ${kind.name}, the object ${layoutText(layout)}`)
  const known = new Set(kind.fields.map(([name]) => name))
  const extra = layout.fields.find((field) => !known.has(field.name) && !isPadding(field.name))
  if (extra !== undefined)
    throw new LayoutError(where, `field ${extra.name} is in the object (${layoutText(extra.layout)}) but not in the shape`)
  const fields = kind.fields.map(([name, fieldKind]) => {
    const field = layout.fields.find((candidate) => candidate.name === name)
    if (field === undefined) throw new LayoutError(where, `field ${name} is in the shape (${fieldKind.kind}) but not in the object`)
    return { name, offset: field.offset, part: partOf(fieldKind, field.layout, `${where}.${name}`) }
  })
  return {
    covers: fields.flatMap(({ offset, part }) => part.covers.map((at) => offset + at)),
    put(view, at, value) {
      const record = value as Readonly<Record<string, unknown>>
      for (const { name, offset, part } of fields) part.put(view, at + offset, record[name])
    },
    get(view, at) {
      const record: Record<string, unknown> = {}
      for (const { name, offset, part } of fields) record[name] = part.get(view, at + offset)
      return record
    },
  }
}

function arrayPart(kind: Extract<Kind, { kind: 'array' }>, layout: Layout, where: string): FieldCodec {
  if (layout.kind !== 'array' || layout.length !== kind.length)
    throw new LayoutError(where, `the shape has ${kind.length} elements, the object ${layoutText(layout)}`)
  const part = partOf(kind.of, layout.of, where)
  const offsets = Array.from({ length: kind.length }, (_, index) => index * layout.of.size)
  return {
    covers: offsets.flatMap((offset) => part.covers.map((at) => offset + at)),
    put(view, at, value) {
      const items = value as readonly unknown[]
      if (items.length !== kind.length) throw new LayoutError(where, `${items.length} elements instead of ${kind.length}`)
      for (const [index, offset] of offsets.entries()) part.put(view, at + offset, items[index])
    },
    get: (view, at) => offsets.map((offset) => part.get(view, at + offset)),
  }
}

/** Byte offsets that no field writes. */
function uncovered(part: FieldCodec, size: number): number[] {
  const zero = new Uint8Array(size).fill(1)
  for (const at of part.covers) zero[at] = 0
  return [...zero.keys()].filter((at) => zero[at] === 1)
}
