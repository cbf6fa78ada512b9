// SPDX-License-Identifier: Apache-2.0
/** Rows of maps as plain data: addresses as text, many numbers as few words. Layer: cli (pure). */
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import type { Kind } from '#agent/maps/field-kinds.ts'

/** `value` is what the codec of a field of this kind gives. */
export function plain(kind: Kind, value: unknown): unknown {
  switch (kind.kind) {
    case 'addr':
      return isAddr(value) ? formatAddr(value) : value
    case 'array':
      return Array.isArray(value) ? value.map((one) => plain(kind.of, one)) : value
    case 'struct':
      return isObject(value) ? Object.fromEntries(kind.fields.map(([name, field]) => [name, plain(field, value[name])])) : value
    case 'u16List':
    case 'bitList':
      return value instanceof Uint16Array || value instanceof Uint32Array ? runs([...value]) : value
    default:
      return value
  }
}

function isAddr(value: unknown): value is Addr {
  return typeof value === 'string' && value.length === 16
}

/** [7, 7, 7, 1] as "7x3 1" */
function runs(values: readonly number[]): string {
  const texts: string[] = []
  for (let at = 0; at < values.length;) {
    let next = at
    while (values[next] === values[at]) next++
    texts.push(next - at > 1 ? `${values[at] ?? 0}x${next - at}` : String(values[at]))
    at = next
  }
  return texts.join(' ')
}
