// SPDX-License-Identifier: Apache-2.0
/** The report of `ipam check`: made, and read again for a release. Layer: cli (pure). */
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { tryParseAddr, type Addr } from '#lib/base/ip.ts'
import { sameHolder } from '#lib/ipam/block.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import type { AddressProblem } from './problems.ts'

export interface Report {
  /** of the program that made it: "v3.31.5" */
  readonly version: string
  readonly time: string
  /** null: the cluster does not say */
  readonly clusterGUID: string | null
  readonly datastoreLocked: boolean
  readonly problems: readonly AddressProblem[]
}

/** An address, and whose it was when it was found to be leaked. */
export interface LeakedAddress {
  readonly addr: Addr
  readonly holder: Holder
}

export interface ReadReport extends Pick<Report, 'clusterGUID' | 'datastoreLocked'> {
  readonly leaked: readonly LeakedAddress[]
}

export function reportText(report: Report): string {
  return `${JSON.stringify(report, undefined, 2)}\n`
}

/** Throws ConfigError. */
export function readReport(path: string, text: string): ReadReport {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new ConfigError('--from-report', `${path}: ${reason}`, cause)
  }
  const json = parsed(text, refuse)
  if (!isObject(json) || !Array.isArray(json['problems']) || typeof json['datastoreLocked'] !== 'boolean')
    return refuse('is no report of ipam check')
  const problems: readonly unknown[] = json['problems']
  const guid = json['clusterGUID']
  return {
    clusterGUID: typeof guid === 'string' ? guid : null,
    datastoreLocked: json['datastoreLocked'],
    leaked: problems
      .filter((one) => isObject(one) && one['kind'] === 'leaked')
      .map((one) => leakedOf(one) ?? refuse(`is no leaked address: ${JSON.stringify(one)}`)),
  }
}

function parsed(text: string, refuse: (reason: string, cause: unknown) => never): unknown {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    return refuse(`is not JSON: ${errorText(thrown)}`, thrown)
  }
}

function leakedOf(problem: unknown): LeakedAddress | undefined {
  if (!isObject(problem) || typeof problem['address'] !== 'string' || !isObject(problem['holder'])) return undefined
  const addr = tryParseAddr(problem['address'])
  const { namespace, pod, containerId } = problem['holder']
  if (addr === undefined || typeof namespace !== 'string' || typeof pod !== 'string' || typeof containerId !== 'string') return undefined
  return { addr, holder: { namespace, pod, containerId } }
}

/** Those that every report has, of the same holder. */
export function leakedInAll(reports: readonly ReadReport[]): readonly LeakedAddress[] {
  const [first, ...others] = reports
  const has = ({ leaked }: ReadReport, { addr, holder }: LeakedAddress): boolean =>
    leaked.some((one) => one.addr === addr && sameHolder(one.holder, holder))
  return (first?.leaked ?? []).filter((one) => others.every((other) => has(other, one)))
}
