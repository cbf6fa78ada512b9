// SPDX-License-Identifier: Apache-2.0
/** netplane-operator remove: deletes the Installation, and waits until it is gone. Layer: operator. */
import { systemClock, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { isAbsent } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { UnreachableError } from '#lib/api/errors.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION } from '#lib/kube/operator-resources.ts'
import { findServer } from '#lib/control/api-server.ts'

export interface RemoveOptions {
  readonly client: Pick<ApiClient, 'get' | 'delete'>
  readonly clock: Clock
  readonly timeoutMs: number
  /** what is waited for, whenever that is something else */
  readonly print: (text: string) => void
}

const INSTALLATION: Named = { apiVersion: `${OPERATOR_GROUP}/${OPERATOR_VERSION}`, kind: 'Installation', name: 'default' }
const LOOK_MS = 500

export interface RemoveCommand {
  readonly kubeconfig: string | undefined
  readonly timeoutMs: number
}

/** Prints what is waited for; returns the exit code. */
export async function removeCommand({ kubeconfig, timeoutMs }: RemoveCommand): Promise<number> {
  const print = (text: string): void => {
    process.stdout.write(`${text}\n`)
  }
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    await using client = new ApiClient(await findServer(kubeconfig, { clock: systemClock, tell: print, signal }))
    const { isGone, text } = await removeInstallation({ client, clock: systemClock, timeoutMs, print })
    print(text)
    return isGone ? 0 : 1
  } catch (thrown) {
    process.stderr.write(`netplane-operator: ${errorText(thrown)}\n`)
    return 1
  }
}

export interface Removed {
  /** it is gone, or was not there */
  readonly isGone: boolean
  /** for people */
  readonly text: string
}

/** Rejects when the server refuses. */
export async function removeInstallation({ client, clock, timeoutMs, print }: RemoveOptions): Promise<Removed> {
  const { signal } = new AbortController()
  const end = clock.now() + timeoutMs
  let told = ''
  let wasThere = false
  for (;;) {
    const { left, isThere } = await whatIsLeft(client)
    wasThere ||= isThere
    if (left === undefined) return { isGone: true, text: wasThere ? 'Installation default is gone' : NOTHING }
    if (left !== told) print(left)
    told = left
    if (clock.now() >= end) return { isGone: false, text: `Installation default is still there after ${timeoutMs / 1000} s` }
    await clock.sleep(LOOK_MS, signal)
  }
}

const NOTHING = 'there is no Installation default: nothing is removed'

/** `left` undefined: nothing. */
async function whatIsLeft(client: RemoveOptions['client']): Promise<{ readonly left: string | undefined; readonly isThere: boolean }> {
  try {
    const found = await client.get(INSTALLATION)
    if (found.metadata.deletionTimestamp === undefined) await client.delete(INSTALLATION)
    return { left: ['Installation default is being deleted', ...holdersOf(found)].join('; '), isThere: true }
  } catch (thrown) {
    // of the object, or of the definition of its kind
    if (isAbsent(thrown)) return { left: undefined, isThere: false }
    if (thrown instanceof UnreachableError) return { left: errorText(thrown), isThere: false }
    throw thrown
  }
}

/** Who keeps it, and what they say. */
function holdersOf({ metadata, status }: ApiObject): readonly string[] {
  const finalizers: unknown = metadata['finalizers']
  const conditions: readonly unknown[] = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
  const said = conditions.flatMap((one) =>
    isObject(one) && one['type'] !== 'Available' && one['status'] === 'True' ? [`${String(one['type'])}: ${String(one['message'])}`] : [],
  )
  return [...(Array.isArray(finalizers) ? [`finalizers ${finalizers.join(', ')}`] : []), ...said]
}
