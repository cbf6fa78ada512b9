// SPDX-License-Identifier: Apache-2.0
/** The parts of a PolicyMatch, which clients up to 3.31 send as texts, and later ones as StringMatch: both are bytes
 * with a length. Layer: lib/flows/wire. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { MatchType, StringMatchSchema } from './goldmane_pb.ts'

export interface PartMatch {
  readonly value: string
  /** contained in it is enough */
  readonly isFuzzy: boolean
}

/** The tags of StringMatch's two fields: no name of an object begins with such a character. */
const TAGS = [0x0a, 0x10]

/** undefined: any. */
export function readPart(bytes: Uint8Array): PartMatch | undefined {
  const match = bytes[0] !== undefined && TAGS.includes(bytes[0]) ? stringMatch(bytes) : { value: text(bytes), isFuzzy: false }
  return match.value === '' ? undefined : match
}

/** As clients of today send it. */
export function writePart(match: PartMatch | undefined): Uint8Array {
  if (match === undefined) return new Uint8Array()
  const type = match.isFuzzy ? MatchType.Fuzzy : MatchType.Exact
  return toBinary(StringMatchSchema, create(StringMatchSchema, { value: match.value, type }))
}

function stringMatch(bytes: Uint8Array): PartMatch {
  try {
    const { value, type } = fromBinary(StringMatchSchema, bytes)
    return { value, isFuzzy: type === MatchType.Fuzzy }
  } catch {
    // no client makes it: it is a name that nothing has
    return { value: text(bytes), isFuzzy: false }
  }
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
