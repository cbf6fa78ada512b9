// SPDX-License-Identifier: Apache-2.0
/** Addresses and times as all reports show them. Layer: cli (pure). */
import { formatAddr, hostPort, isV4, type Addr } from '#lib/base/ip.ts'
import type { End } from './filter.ts'

export interface EndRecord {
  readonly address: string
  readonly port: number
}

export function endRecord({ addr, port }: End): EndRecord {
  return { address: formatAddr(addr), port }
}

export function endText({ address, port }: EndRecord): string {
  return hostPort(address, port)
}

/** "0.4s", "75s", "3h12m" */
export function durationText(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  if (seconds < 600) return `${seconds.toFixed(0)}s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes}m` : `${Math.floor(minutes / 60)}h${minutes % 60}m`
}

/** Bits of a prefix tree's key, counted for the mapped form, in the family's own count. */
export function prefixText(addr: Addr, mappedBits: number): string {
  return `${formatAddr(addr)}/${mappedBits - (isV4(addr) ? 96 : 0)}`
}

export function orDash(text: string): string {
  return text === '' ? '-' : text
}
