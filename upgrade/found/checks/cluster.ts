// SPDX-License-Identifier: Apache-2.0
/** Clusters that this version is not for. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { compareVersions, parseVersion } from '#lib/base/text/version.ts'
import { namesText } from '#lib/control/names-text.ts'
import { isOldKernel, OLDEST_KERNEL } from '#lib/base/os/oldest-kernel.ts'
import { isOldServer, OLDEST_SERVER } from '#lib/preflight/oldest-server.ts'
import type { Refusal } from '../../refusal.ts'
import type { Check } from '../check.ts'
import type { UpgradeFacts } from '../facts.ts'
import { objectsOf } from '../objects.ts'
import type { Traits } from '../traits.ts'

/** The first older version that was made for a server of `OLDEST_SERVER`. */
const FIRST_FOR_SERVER = [3, 29, 0] as const

/** As Node objects have them. */
const ARCHITECTURES: readonly string[] = ['amd64', 'arm64']

export const CLUSTER_REFUSALS: readonly Check[] = [
  { when: `Kubernetes is older than ${OLDEST_SERVER}`, find: oldServer },
  { when: 'nodes run Windows', find: windowsNodes },
  { when: 'nodes have a kernel that is too old', find: oldKernels },
  { when: 'nodes are of another architecture', find: otherArchitectures },
]

function oldServer({ facts: { serverVersion }, version }: Traits): readonly Refusal[] {
  if (serverVersion === undefined || !isOldServer(serverVersion)) return []
  const agents = version === undefined ? undefined : parseVersion(version)
  const isFit = agents !== undefined && compareVersions(agents, FIRST_FOR_SERVER) >= 0
  const way = isFit
    ? `v${version ?? ''} may stay meanwhile`
    : 'take v3.29 or v3.30 of the product on the way, which are the ones made for it'
  return [
    {
      ...{ resource: 'Kubernetes', field: 'version', value: serverVersion },
      reason: `kinds of this version need ${OLDEST_SERVER}`,
      remedy: `Upgrade Kubernetes first, to ${OLDEST_SERVER} or later, one minor version after the other; ${way}`,
    },
  ]
}

function windowsNodes({ facts }: Traits): readonly Refusal[] {
  const nodes = objectsOf(facts, '', 'Node').filter(({ metadata }) => metadata.labels?.['kubernetes.io/os'] === 'windows')
  if (nodes.length === 0) return []
  return [
    {
      ...{ resource: nodesText(nodes), field: "metadata.labels['kubernetes.io/os']" },
      ...{ value: 'windows', reason: 'nodes of Windows have no agent of this version' },
      remedy: 'Take them out of the cluster',
    },
  ]
}

/** Agents of this version would not come up there, and by then nothing leads back. */
function oldKernels({ facts }: Traits): readonly Refusal[] {
  return nodesBy(facts, 'kernelVersion')
    .filter(([release]) => isOldKernel(release))
    .map(([release, nodes]) => ({
      ...{ resource: nodesText(nodes), field: 'status.nodeInfo.kernelVersion', value: release },
      reason: `the oldest kernel that agents of this version run on is ${OLDEST_KERNEL}`,
      remedy: 'Upgrade the kernel of these nodes, or take them out of the cluster',
    }))
}

function otherArchitectures({ facts }: Traits): readonly Refusal[] {
  return nodesBy(facts, 'architecture')
    .filter(([architecture]) => !ARCHITECTURES.includes(architecture))
    .map(([architecture, nodes]) => ({
      ...{ resource: nodesText(nodes), field: 'status.nodeInfo.architecture', value: architecture },
      reason: `agents of this version are for ${ARCHITECTURES.join(' and ')}`,
      remedy: 'Take these nodes out of the cluster',
    }))
}

/** By what their status says of the machine; nodes that say nothing are left out. */
function nodesBy(facts: UpgradeFacts, field: string): readonly (readonly [string, readonly ApiObject[]])[] {
  const by = Map.groupBy(objectsOf(facts, '', 'Node'), ({ status }) => textOf(fieldsOf(fieldsOf(status)['nodeInfo'])[field]))
  return [...by].filter(([value]) => value !== '')
}

/** "Node a, b and 3 more" */
function nodesText(nodes: readonly ApiObject[]): string {
  return `Node ${namesText(nodes.map(({ metadata }) => metadata.name))}`
}
