// SPDX-License-Identifier: Apache-2.0
/** UIDs of stored objects, and those that clients saw for them. Layer: upgrade (pure). */
import { compareVersions, parseVersion } from '#lib/base/text/version.ts'

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** Bytes of a UUID that say its version and variant. */
const KEPT: readonly number[] = [6, 8]

/** The other one of the two: every byte in reverse order of its bits, but for those of version and variant.
 * Undefined: it is no UID. */
export function otherUid(uid: string): string | undefined {
  if (!UID.test(uid)) return undefined
  const bytes = Array.from(uid.replaceAll('-', '').matchAll(/../g), ([byte]) => Number.parseInt(byte, 16))
  const hex = bytes.map((byte, at) => (KEPT.includes(at) ? byte : reversed(byte)).toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** What clients of this version saw: the stored one before 3.27.5, the other one since then. */
export function shownUid(stored: string, version: string): string | undefined {
  const parsed = parseVersion(version)
  if (parsed === undefined) return undefined
  return compareVersions(parsed, [3, 27, 5]) < 0 ? stored : otherUid(stored)
}

function reversed(byte: number): number {
  return [0, 1, 2, 3, 4, 5, 6, 7].reduce((result, bit) => result | (((byte >> bit) & 1) << (7 - bit)), 0)
}
