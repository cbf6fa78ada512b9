// SPDX-License-Identifier: Apache-2.0
/** What the NodeNetwork of a node says, as text. Layer: cli (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { nodeNetworkStatusOf, type NodeNetworkStatus, type Proof } from '#lib/kube/objects/node-network-status.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { linesText } from '../command-result.ts'
import { orDash } from '../text.ts'

/** What of it cannot be read is left out. */
export function nodeNetworkText(object: ApiObject): string {
  const identified = identify(object)
  const parsed = identified.kind === 'ours' ? parseObject(object, identified.ref) : undefined
  const network = parsed?.kind === 'ok' && parsed.value.kind === 'NodeNetwork' ? parsed.value : undefined
  const { addresses = [], podCIDRs = [], blocks = [], interfaces = [] } = network ?? {}
  return linesText([
    `NodeNetwork ${object.metadata.name}`,
    `  Addresses:   ${orDash(addresses.map(formatAddr).join(' '))}`,
    `  Pod ranges:  ${orDash([...podCIDRs, ...blocks].map(formatCidr).join(' '))}`,
    `  Interfaces:  ${orDash(interfaces.map(({ name }) => name).join(' '))}`,
    ...statusLines(nodeNetworkStatusOf(object['status'])),
  ])
}

function statusLines(status: NodeNetworkStatus | undefined): readonly string[] {
  if (status === undefined) return ['  Services:    the agent says nothing of them yet']
  const { version, dataplane, proof, kubeProxy, flows } = status
  return [
    `  Agent:       ${orDash(version)}`,
    `  Services:    ${dataplane.mode} since ${orDash(dataplane.since)}`,
    `  Proof:       ${proof === undefined ? '-' : proofText(proof)}`,
    ...(proof?.failed ?? []).map((one) => `               not answered: ${one}`),
    `  kube-proxy:  ${kubeProxy ?? '-'}`,
    ...(flows === undefined ? [] : [`  Flows:       ${flows.other} still of the other mode`]),
  ]
}

function proofText({ mode, state, asked, answered, at }: Proof): string {
  return `${state} as ${mode}, ${answered} of ${asked} answered, at ${orDash(at)}`
}
