// SPDX-License-Identifier: Apache-2.0
/** Text for terminals: tables of a lab's state. Layer: lab (pure). */
import { table } from '#lib/base/table.ts'
import type { Leftover } from './network/down.ts'
import type { LabStatus } from './status.ts'

export function statusText(status: LabStatus): string {
  const nodes = status.nodes.map((node) => [
    node.name,
    addressText(node.addresses),
    node.holder === undefined ? 'broken: run up' : agentText(node.agent),
    node.netns,
  ])
  const pods = status.pods.map((pod) => [
    pod.key,
    pod.node,
    pod.addresses.join(' ') || 'host network',
    pod.iface || '-',
    pod.server === undefined ? '-' : 'answers',
    pod.netns,
  ])
  return [
    `lab ${status.name}: ${status.ok ? 'ok' : 'not whole'}, manifests in ${status.resources}`,
    '',
    table([['NODE', 'ADDRESSES', 'AGENT', 'NAMESPACE'], ...nodes]),
    '',
    ...(pods.length === 0 ? ['no pods'] : [table([['POD', 'NODE', 'ADDRESSES', 'INTERFACE', 'SERVER', 'NAMESPACE'], ...pods])]),
    '',
    table([
      ['client', addressText(status.client)],
      ['far', addressText(status.far)],
    ]),
  ].join('\n')
}

export function leftoverText(leftover: Leftover): string {
  return `left: ${leftover.kind} ${leftover.what}: ${leftover.why}`
}

function agentText(agent: LabStatus['nodes'][number]['agent']): string {
  if (agent === undefined) return 'none'
  return `pid ${agent.pid}, ${agent.ready ? 'ready' : 'not ready'}`
}

function addressText(addresses: readonly string[]): string {
  return addresses.map((address) => address.split('/')[0]).join(' ')
}
