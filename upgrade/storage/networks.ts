// SPDX-License-Identifier: Apache-2.0
/** `networks`: agents of this version know other nodes by NodeNetworks, which those nodes' agents write. Older agents
 * write none: the upgrade does it for them, so that their pods are reached from the first node that is rolled.
 * Layer: upgrade. */
import { listOrNone } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { IP_BLOCK } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import type { Step } from '../steps/step.ts'
import { networkOf } from '../stored/networks.ts'
import { AS_US, type StorageOptions } from './options.ts'

const AT_ONCE = 16

export function networksStep({ client }: StorageOptions): Step {
  const missing = async (signal: AbortSignal): Promise<readonly ApiObject[]> => {
    const [nodes, said] = [
      await listOrNone(client, { apiVersion: 'v1', kind: 'Node' }, { signal }),
      await listOrNone(client, NODE_NETWORK, { signal }),
    ]
    const known = new Set(said.map(({ metadata }) => metadata.name))
    return nodes.filter(({ metadata }) => !known.has(metadata.name))
  }
  return {
    name: 'networks',
    about: 'says for each node what agents of this version have to know of it to reach its pods (NodeNetwork), until its own agent does',
    commands: [],
    look: async (signal) => ({ isDone: (await missing(signal)).length === 0, problems: [] }),
    run: async (signal, tell) => {
      const nodes = await missing(signal)
      const blocks = await listOrNone(client, IP_BLOCK, { signal })
      await mapLimited(nodes, AT_ONCE, async (node) => {
        signal.throwIfAborted()
        try {
          await client.create(asApiObject({ ...NODE_NETWORK, ...networkOf(node, blocks) }), { ...AS_US, signal })
        } catch (thrown) {
          if (!isRefused(thrown, 'AlreadyExists')) throw thrown
        }
      })
      tell(`said it for ${nodes.length} nodes`)
    },
  }
}
