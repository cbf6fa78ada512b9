// SPDX-License-Identifier: Apache-2.0
/** Entries of an old layout carried into a new one by field name. Layer: agent/maps. */
import { LayoutError } from '#lib/base/errors.ts'
import type { Layout } from './layout.ts'
import { isPadding, layoutText } from './layout.ts'
import { LITTLE_ENDIAN } from './view.ts'

/** Bytes that go from one place to another; all others are zero. */
interface Move {
  readonly from: number
  readonly to: number
  readonly size: number
}

/** Carries `count` entries that lie back to back. */
export interface Copier {
  readonly fromSize: number
  readonly toSize: number
  copy(bytes: Uint8Array, count: number): Buffer
}

/** Fields that are new are zero, fields that are gone are left out, host-order integers may grow. Throws
 * LayoutError, naming the field, where a field of the same name cannot hold the old one. */
export function valueCopier(from: Layout, to: Layout): Copier {
  return copierOf(from, to, moves(from, to, { where: layoutText(to), exact: false }))
}

/** As {@link valueCopier}, but every field must be on both sides in the same size: else two keys could become one,
 * or mean something else. */
export function keyCopier(from: Layout, to: Layout): Copier {
  return copierOf(from, to, moves(from, to, { where: layoutText(to), exact: true }))
}

/** Equal for layouts that put every field at the same place with the same size and byte order. */
export function layoutSignature(layout: Layout): string {
  switch (layout.kind) {
    case 'int':
      return `${isBig(layout) ? 'be' : layout.signed ? 'i' : 'u'}${layout.size}`
    case 'enum':
      return `u${layout.size}`
    case 'array':
      return `${layoutSignature(layout.of)}[${layout.length}]`
    case 'struct':
      return `${layout.size}{${layout.fields.map((field) => `${field.name}@${field.offset}:${layoutSignature(field.layout)}`).join(',')}}`
  }
}

interface Context {
  readonly where: string
  readonly exact: boolean
}

function moves(from: Layout, to: Layout, context: Context): Move[] {
  if (from.kind === 'struct' && to.kind === 'struct') return structMoves(from, to, context)
  if (from.kind === 'array' && to.kind === 'array') {
    const [fromItem, toItem, item] = [from.of, to.of, moves(from.of, to.of, context)]
    if (context.exact && from.length !== to.length) throw misfit(from, to, context)
    return Array.from({ length: Math.min(from.length, to.length) }, (_, at) => shifted(item, at * fromItem.size, at * toItem.size)).flat()
  }
  if (isNumber(from) && isNumber(to)) return numberMove(from, to, context)
  throw misfit(from, to, context)
}

function structMoves(from: Extract<Layout, { kind: 'struct' }>, to: Extract<Layout, { kind: 'struct' }>, context: Context): Move[] {
  const old = new Map(from.fields.filter((field) => !isPadding(field.name)).map((field) => [field.name, field]))
  const kept: Move[] = []
  for (const field of to.fields.filter((candidate) => !isPadding(candidate.name))) {
    const source = old.get(field.name)
    old.delete(field.name)
    if (source !== undefined)
      kept.push(
        ...shifted(
          moves(source.layout, field.layout, { ...context, where: `${context.where}.${field.name}` }),
          source.offset,
          field.offset,
        ),
      )
    else if (context.exact) throw new LayoutError(context.where, `the key field ${field.name} is new`)
  }
  const [gone] = old.keys()
  if (context.exact && gone !== undefined) throw new LayoutError(context.where, `the key field ${gone} is gone`)
  return kept
}

function numberMove(from: Layout, to: Layout, context: Context): Move[] {
  const fits = from.size === to.size || (!context.exact && from.size < to.size && !isBig(from))
  if (!fits || isBig(from) !== isBig(to)) throw misfit(from, to, context)
  return [{ from: 0, to: LITTLE_ENDIAN || isBig(to) ? 0 : to.size - from.size, size: from.size }]
}

function isNumber(layout: Layout): boolean {
  return layout.kind === 'int' || layout.kind === 'enum'
}

/** In network order, which only the typedef tells. */
function isBig(layout: Layout): boolean {
  return layout.kind === 'int' && layout.typedefs.some((name) => name.startsWith('__be'))
}

function shifted(list: readonly Move[], from: number, to: number): Move[] {
  return list.map((move) => ({ from: move.from + from, to: move.to + to, size: move.size }))
}

function misfit(from: Layout, to: Layout, context: Context): LayoutError {
  return new LayoutError(context.where, `${layoutText(from)} in the old map, ${layoutText(to)} in the new one`)
}

/** Neighbouring moves become one, so that an unchanged struct is a single copy. */
function copierOf(from: Layout, to: Layout, list: readonly Move[]): Copier {
  const merged: Move[] = []
  for (const move of list.toSorted((a, b) => a.to - b.to)) {
    const last = merged.at(-1)
    if (last !== undefined && last.from + last.size === move.from && last.to + last.size === move.to)
      merged[merged.length - 1] = { ...last, size: last.size + move.size }
    else merged.push(move)
  }
  return {
    fromSize: from.size,
    toSize: to.size,
    copy(bytes, count) {
      const result = Buffer.alloc(count * to.size)
      for (let at = 0; at < count; at++) {
        for (const move of merged)
          result.set(bytes.subarray(at * from.size + move.from, at * from.size + move.from + move.size), at * to.size + move.to)
      }
      return result
    },
  }
}
