// SPDX-License-Identifier: Apache-2.0
/** Text for terminals: tables of a lab's state. Layer: lab (pure). */
import type { Leftover } from './down.ts'
import type { LabStatus } from './status.ts'

/** Columns as wide as their widest cell, two spaces apart; the first row is the heading. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

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
