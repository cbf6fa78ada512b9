// SPDX-License-Identifier: Apache-2.0
/** What agents have said of their nodes, taken back once no agent is left to keep it true. Layer: operator. */
import { isAbsent } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { findCondition, NETWORK_UNAVAILABLE, OUR_REASONS } from '#lib/kube/objects/conditions.ts'
import { textOf, troubleOf, type Trouble } from './owned-objects.ts'

export interface NodeWordsInput {
  readonly client: LockableApi
  readonly nodes: Iterable<ApiObject>
  readonly nodeNetworks: Iterable<ApiObject>
  /** why no object of netplane.io may be written; undefined: they may */
  readonly whyLocked: () => string | undefined
  /** false once another process may act */
  readonly mayAct: () => boolean
}

type Patch = Parameters<ApiClient['patch']>

/** of a large cluster's writes */
const AT_ONCE = 16

/** The condition goes from its list: True would keep pods from a node that another plugin serves, and without any
 * plugin the kubelet itself says that the node is not ready. */
const WITHOUT_CONDITION = { status: { conditions: [{ $patch: 'delete', type: NETWORK_UNAVAILABLE }] } }

/** Status of NodeNetworks, and the condition of Nodes where it is of ours. Returns what could not be written. */
export async function takeBackNodeWords(input: NodeWordsInput, signal: AbortSignal): Promise<readonly Trouble[]> {
  const { nodes, nodeNetworks, whyLocked, mayAct } = input
  const client = lockable(input.client, whyLocked)
  const options = { subresource: 'status', signal } as const
  const writes = [
    ...[...nodes].filter(hasOurCondition).map((object) => ({ object, patch: WITHOUT_CONDITION, type: 'strategic' }) as const),
    ...[...nodeNetworks].filter(hasStatus).map((object) => ({ object, patch: { status: null }, type: 'merge' }) as const),
  ]
  const troubles = await mapLimited(writes, AT_ONCE, async ({ object, patch, type }) => {
    if (!mayAct()) return undefined
    return await troubleOf(textOf(object), async () => {
      await ifThere(client, [namedOf(object), patch, { type, ...options }])
      return undefined
    })
  })
  return troubles.filter((trouble) => trouble !== undefined)
}

async function ifThere(client: LockableApi, patch: Patch): Promise<void> {
  try {
    await client.patch(...patch)
  } catch (thrown) {
    if (!isAbsent(thrown)) throw thrown
  }
}

/** Another plugin's, and the cloud's own, stay. */
function hasOurCondition(node: ApiObject): boolean {
  return findCondition(node, NETWORK_UNAVAILABLE)?.reason.startsWith(OUR_REASONS) === true
}

function hasStatus({ status }: ApiObject): boolean {
  return status !== undefined && status !== null
}
