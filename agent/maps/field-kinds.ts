// SPDX-License-Identifier: Apache-2.0
/** What a field of a map struct means; offsets and padding are BTF's business. Layer: agent/maps. */
import type { Addr } from '#lib/base/ip.ts'

/** How a value is written. `number` kinds are checked for range when encoding. */
export type Kind =
  /** host order, 1, 2 or 4 bytes */
  | { readonly kind: 'uint'; readonly size: 1 | 2 | 4 }
  /** network order (`__be16`, `__be32`) */
  | { readonly kind: 'big'; readonly size: 2 | 4 }
  /** 8 bytes as a number up to 2^53 - 1 */
  | { readonly kind: 'count' }
  /** 8 bytes of ns as a number of ms, which a double keeps to within a few ns for decades */
  | { readonly kind: 'ns' }
  /** 8 bytes as 16 hex digits */
  | { readonly kind: 'id' }
  /** the same in network order, which C has as two `__be32` */
  | { readonly kind: 'bigId' }
  /** host order, 2 bytes each: many of them */
  | { readonly kind: 'u16List'; readonly length: number }
  | { readonly kind: 'bitList'; readonly words: number }
  /** `struct addr` */
  | { readonly kind: 'addr' }
  /** 6 bytes as "02:00:00:00:00:01" */
  | { readonly kind: 'mac' }
  | { readonly kind: 'array'; readonly of: Kind; readonly length: number }
  | { readonly kind: 'struct'; readonly name: string; readonly fields: readonly (readonly [string, Kind])[] }

declare const meaning: unique symbol

/** A kind with the TypeScript type of its values; the type exists for the compiler only. */
export interface Field<T> {
  readonly kind: Kind
  readonly [meaning]?: T
}

/** What one encodes and decodes: `ShapeType<typeof frontendKey>`. */
export type ShapeType<F> = F extends Field<infer T> ? T : never

export const u8: Field<number> = { kind: { kind: 'uint', size: 1 } }
export const u16: Field<number> = { kind: { kind: 'uint', size: 2 } }
export const u32: Field<number> = { kind: { kind: 'uint', size: 4 } }
export const be16: Field<number> = { kind: { kind: 'big', size: 2 } }
export const be32: Field<number> = { kind: { kind: 'big', size: 4 } }
export const u64: Field<number> = { kind: { kind: 'count' } }
export const ns: Field<number> = { kind: { kind: 'ns' } }
export const id64: Field<string> = { kind: { kind: 'id' } }
export const bigId: Field<string> = { kind: { kind: 'bigId' } }
export const addr: Field<Addr> = { kind: { kind: 'addr' } }
export const mac: Field<string> = { kind: { kind: 'mac' } }

/** `__u16[length]` at once, as a typed array. */
export function u16List(length: number): Field<Uint16Array> {
  return { kind: { kind: 'u16List', length } }
}

/** u64 words of bits, each as two numbers of 32, the lower half first. */
export function bitList(words: number): Field<Uint32Array> {
  return { kind: { kind: 'bitList', words } }
}

export function arrayOf<T>(of: Field<T>, length: number): Field<readonly T[]> {
  return { kind: { kind: 'array', of: of.kind, length } }
}

/** The fields of the C struct `name`, without padding; their order is C's business. */
export function shape<F extends Readonly<Record<string, Field<unknown>>>>(
  name: string,
  fields: F,
): Field<{ readonly [K in keyof F]: ShapeType<F[K]> }> {
  return { kind: { kind: 'struct', name, fields: Object.entries(fields).map(([field, { kind }]) => [field, kind]) } }
}
