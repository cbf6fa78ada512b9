// SPDX-License-Identifier: Apache-2.0
/** The types that a map in the kernel carries: a reader of a pin need not know which version made it.
 * Layer: agent/maps. */
import { LayoutError } from '#lib/base/errors.ts'
import { parseBtf, type Btf } from './btf.ts'

/** What the kernel says of a map; `BpfMap.info()` has it. */
export interface CarriedInfo {
  readonly name: string
  /** 0 when it has none, as the ids of the types in it */
  readonly btfId: number
  readonly keyTypeId: number
  readonly valueTypeId: number
}

export interface CarriedTypes {
  readonly btf: Btf
  readonly keyTypeId: number
  readonly valueTypeId: number
}

/** `btfById` gives the bytes. Throws LayoutError when the map has no BTF. */
export function carriedTypes(info: CarriedInfo, btfById: (id: number) => Uint8Array): CarriedTypes {
  const { name, btfId, keyTypeId, valueTypeId } = info
  if (btfId === 0 || keyTypeId === 0) throw new LayoutError(name, 'the map carries no BTF')
  return { btf: parseBtf(btfById(btfId)), keyTypeId, valueTypeId }
}
