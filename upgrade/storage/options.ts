// SPDX-License-Identifier: Apache-2.0
/** What the steps of the storage work with. Layer: upgrade. */
import type { ApiClient } from '#lib/api/client.ts'
import type { Clock } from '#lib/base/clock.ts'
import { NetplaneError } from '#lib/base/errors.ts'
import { firstFew } from '#lib/base/text/first-few.ts'

export type StorageClient = Pick<ApiClient, 'request' | 'get' | 'list' | 'create' | 'update' | 'patch' | 'apply' | 'delete'>

export interface StorageOptions {
  readonly client: StorageClient
  readonly clock: Clock
  /** of the agents */
  readonly namespace: string
  /** of the agents; netplane-node when not given */
  readonly daemonSet?: string
  /** of the agents before this version: `Found.environment` */
  readonly environment: Readonly<Record<string, string>>
  /** of this program: "3.31.5" */
  readonly version: string
  /** so long old agents have to hear of the lock; 10 s when not given */
  readonly drainMs?: number
  /** so long the server has to do what it was asked; 60 s when not given */
  readonly waitMs?: number
}

/** As an owner of fields. */
export const FIELD_MANAGER = 'netplanectl-upgrade'
export const AS_US = { fieldManager: FIELD_MANAGER, strict: true } as const

const WAIT_MS = 60_000
const LOOK_MS = 200

/** A step has not come to its end, for each of these reasons. */
export class StepFailedError extends NetplaneError {
  readonly code = 'UPGRADE_STEP'
  readonly step: string
  readonly reasons: readonly string[]

  constructor(step: string, reasons: readonly string[]) {
    super({ message: `${step}: ${firstFew(reasons)}` })
    this.step = step
    this.reasons = reasons
  }
}

/** Looks again and again. `missing`: undefined when all is there. Throws StepFailedError with what it says when the
 * time is over. */
export async function waitFor(
  { clock, waitMs = WAIT_MS }: Pick<StorageOptions, 'clock' | 'waitMs'>,
  { step, signal, missing }: { readonly step: string; readonly signal: AbortSignal; readonly missing: () => Promise<string | undefined> },
): Promise<void> {
  const end = clock.now() + waitMs
  for (;;) {
    const reason = await missing()
    if (reason === undefined) return
    if (clock.now() >= end) throw new StepFailedError(step, [`${reason}, after ${waitMs / 1000} s`])
    await clock.sleep(LOOK_MS, signal)
  }
}
