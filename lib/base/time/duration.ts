// SPDX-License-Identifier: Apache-2.0
/** Durations as Go writes them: "1h30m", "90s". Layer: lib/base. */

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
])

/** undefined: it is none. */
export function durationMs(value: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(value)) return undefined
  let ms = 0
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) ms += Number(amount) * (UNITS.get(unit ?? '') ?? 0)
  return Math.round(ms)
}

/** For people: the shortest form of whole units. */
export function durationText(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000}h`
  if (ms % 60_000 === 0 && ms >= 3_600_000) return `${ms / 60_000}m`
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`
}
