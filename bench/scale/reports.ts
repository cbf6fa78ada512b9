// SPDX-License-Identifier: Apache-2.0
/** What is written of nodes. Kubelets write while nothing happens, and each agent hears that of its own node. Agents
 * write what all agents hear. Layer: bench. */
import type { ApiClient } from '#lib/api/client.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { NODES } from '../generate.ts'

/** As many as a kubelet reports. */
const IMAGES = 50

/** From `NODES` on there is none of the name. */
export function nodeName(at: number): string {
  return `node-${at}`
}

function nodeAt(at: number) {
  return { apiVersion: 'v1', kind: 'Node', name: nodeName(at % NODES) } as const
}

/** A node has taken another block. */
export async function writeBlocks(client: ApiClient, round: number): Promise<void> {
  const blocks = [`10.${200 + (round % 50)}.${Math.floor(round / 50) % 256}.0/26`]
  const named = { ...NODE_NETWORK, name: nodeName(round % NODES) }
  await client.patch(named, { spec: { blocks } }, { type: 'merge' })
}

/** The largest part of a Node. */
export async function writeImages(client: ApiClient, at: number): Promise<void> {
  const images = Array.from({ length: IMAGES }, (_, image) => {
    const digest = String(image).padStart(64, '0')
    return { names: [`registry.example/team/image-${image}@sha256:${digest}`, `registry.example/team/image-${image}:1.0`], sizeBytes: 1e8 }
  })
  await client.patch(nodeAt(at), { status: { images } }, { type: 'merge', subresource: 'status' })
}

/** That the node is still there; `round`: another one each time. */
export async function writeReport(client: ApiClient, round: number): Promise<void> {
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastHeartbeatTime: new Date(round * 1000).toISOString().replace('.000', ''),
    lastTransitionTime: '2026-01-01T00:00:00Z',
    reason: `Kubelet${type}`,
    message: 'kubelet has said so',
  }))
  await client.patch(nodeAt(round), { status: { conditions } }, { type: 'merge', subresource: 'status' })
}
