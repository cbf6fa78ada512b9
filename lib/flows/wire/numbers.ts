// SPDX-License-Identifier: Apache-2.0
/** Numbers of messages: of 64 bits, and those that stand for names. Layer: lib/flows/wire. */

const MOST = BigInt(Number.MAX_SAFE_INTEGER)

/** A count or a time: of what is negative 0, of what is larger than any the largest. */
export function toNumber(value: bigint): number {
  if (value <= 0n) return 0
  return value > MOST ? Number.MAX_SAFE_INTEGER : Number(value)
}

/** Of what does not fit into 63 bits nearly the largest that does. */
export function toBig(value: number): bigint {
  return BigInt(Math.min(value, LARGEST))
}

const LARGEST = 2 ** 63 - 1024

/** The names that have a number, by it. */
export function byNumber<Name extends string>(
  names: readonly Name[],
  numbers: Readonly<Record<NoInfer<Name>, number>>,
): ReadonlyMap<number, Name> {
  return new Map(names.map((name) => [numbers[name], name]))
}
