// SPDX-License-Identifier: Apache-2.0
/** BTF types to layouts: where each field of a struct lies. Layer: agent/maps. */
import { LayoutError } from '#lib/base/errors.ts'
import type { Btf, BtfMember, BtfType, BtfTypeOf } from './btf.ts'
import { findType, typeById } from './btf.ts'

export interface FieldLayout {
  readonly name: string
  /** bytes from the start of the struct */
  readonly offset: number
  readonly layout: Layout
}

export interface StructLayout {
  readonly kind: 'struct'
  readonly name: string
  readonly size: number
  readonly fields: readonly FieldLayout[]
}

/** `typedefs` from the outside in (`__be16`, `__u16`): BTF's only word about the meaning of a number. */
export type Layout =
  | { readonly kind: 'int'; readonly size: number; readonly signed: boolean; readonly typedefs: readonly string[] }
  | { readonly kind: 'enum'; readonly size: number; readonly name: string }
  | { readonly kind: 'array'; readonly size: number; readonly of: Layout; readonly length: number }
  | StructLayout

/** Fields of these names are padding or kept for later: zero, and in no shape. */
export function isPadding(field: string): boolean {
  return /^(pad\d*|reserved\d*)$/.test(field)
}

/** The layout of a type id. Throws LayoutError on bitfields, unions, pointers and whatever else may not cross to
 * TypeScript. */
export function layoutOf(btf: Btf, id: number): Layout {
  return resolve(btf, id, typeById(btf, id).name)
}

/** The layout of a named struct; throws LayoutError when the object does not have it. */
export function structLayout(btf: Btf, name: string): StructLayout {
  const type = findType(btf, 'struct', name)
  if (type === undefined) {
    const forward = findType(btf, 'forward', name) !== undefined
    throw new LayoutError(name, forward ? 'only declared in this object: bpf/include/types must anchor it' : 'not in this object')
  }
  return structOf(btf, type)
}

/** Bytes that belong to no field, in this struct and those inside it: `from` up to `to`. */
export function holes(layout: Layout, base = 0): { readonly from: number; readonly to: number }[] {
  if (layout.kind === 'array') return Array.from({ length: layout.length }, (_, at) => holes(layout.of, base + at * layout.of.size)).flat()
  if (layout.kind !== 'struct') return []
  const found: { from: number; to: number }[] = []
  let end = base
  for (const field of layout.fields) {
    if (base + field.offset > end) found.push({ from: end, to: base + field.offset })
    found.push(...holes(field.layout, base + field.offset))
    end = base + field.offset + field.layout.size
  }
  if (base + layout.size > end) found.push({ from: end, to: base + layout.size })
  return found
}

/** Throws LayoutError when a key has bytes that no field names: C would have to zero them unseen, or lookups miss. */
export function refuseHoles(layout: Layout): void {
  const [hole] = holes(layout)
  if (hole !== undefined)
    throw new LayoutError(layoutText(layout), `a key with an unnamed hole at bytes ${hole.from}..${hole.to - 1}: give it a pad field`)
}

/** "__be16", "struct addr", "__u8[6]": for messages. */
export function layoutText(layout: Layout): string {
  switch (layout.kind) {
    case 'int':
      return layout.typedefs[0] ?? `${layout.signed ? 'signed' : 'unsigned'} ${layout.size}-byte integer`
    case 'enum':
      return `enum ${layout.name}`
    case 'array':
      return `${layoutText(layout.of)}[${layout.length}]`
    case 'struct':
      return layout.name
  }
}

/** `where` names the field in errors. Typedefs and qualifiers are looked through. */
function resolve(btf: Btf, id: number, where: string): Layout {
  const typedefs: string[] = []
  let type = typeById(btf, id)
  // as many steps as there are types would be a cycle, which valid BTF cannot have
  for (let step = 0; step < btf.types.length; step++) {
    if (type.kind === 'typedef') typedefs.push(type.name)
    else if (type.kind !== 'const' && type.kind !== 'volatile' && type.kind !== 'restrict' && type.kind !== 'typeTag')
      return plain(btf, type, { where, typedefs })
    type = typeById(btf, type.type)
  }
  throw new LayoutError(where, 'typedefs in a circle')
}

function plain(btf: Btf, type: BtfType, context: { readonly where: string; readonly typedefs: readonly string[] }): Layout {
  switch (type.kind) {
    case 'int':
      if (type.bitOffset !== 0 || type.bits !== type.size * 8) throw new LayoutError(context.where, `an integer of ${type.bits} bits`)
      return { kind: 'int', size: type.size, signed: type.signed, typedefs: context.typedefs }
    case 'enum':
      return { kind: 'enum', size: type.size, name: type.name }
    case 'array': {
      const of = resolve(btf, type.element, context.where)
      return { kind: 'array', size: of.size * type.length, of, length: type.length }
    }
    case 'struct':
      return structOf(btf, type)
    case 'forward':
      throw new LayoutError(context.where, `struct ${type.name} is only declared in this object: bpf/include/types must anchor it`)
    default:
      throw new LayoutError(context.where, `a ${type.kind} cannot cross to TypeScript`)
  }
}

function structOf(btf: Btf, type: BtfTypeOf<'struct'>): StructLayout {
  const name = type.name === '' ? '(anonymous)' : type.name
  return { kind: 'struct', name, size: type.size, fields: type.members.map((member) => fieldOf(btf, name, member)) }
}

function fieldOf(btf: Btf, struct: string, member: BtfMember): FieldLayout {
  if (member.name === '') throw new LayoutError(struct, 'an anonymous struct or union inside')
  const where = `${struct}.${member.name}`
  const layout = resolve(btf, member.type, where)
  if (member.bitSize !== 0 || member.bitOffset % 8 !== 0) throw new LayoutError(where, 'a bitfield')
  return { name: member.name, offset: member.bitOffset / 8, layout }
}
