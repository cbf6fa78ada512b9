// SPDX-License-Identifier: Apache-2.0
/** What a command comes to, and how problems of manifests are reported. Layer: cli (pure). */
import { rejectedText } from '#lib/base/result.ts'
import type { Problem } from '#lib/store/source.ts'
import type { EXIT } from './exit-codes.ts'

export interface CommandResult {
  readonly text: string
  /** for standard error: whole lines */
  readonly warnings: string
  readonly exitCode: typeof EXIT.done | typeof EXIT.failed
}

export interface ProblemRecord {
  /** "policies.yaml:12"; null where there are no places */
  readonly place: string | null
  /** "NetworkPolicy/shop/db" */
  readonly resource: string
  /** "spec.ingress[0].ports[1]"; empty: the whole */
  readonly field: string
  readonly reason: string
}

export function problemRecord({ place, rejected }: Problem): ProblemRecord {
  return { place: place ?? null, resource: rejected.ref, field: rejected.path, reason: rejected.reason }
}

export function problemText({ place, rejected }: Problem): string {
  return `${place === undefined ? '' : `${place}: `}${rejectedText(rejected)}`
}

/** Those that are undefined are left out. */
export function linesText(lines: readonly (string | undefined)[]): string {
  return lines.map((line) => (line === undefined ? '' : `${line}\n`)).join('')
}
