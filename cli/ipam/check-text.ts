// SPDX-License-Identifier: Apache-2.0
/** What `ipam check` prints. Layer: cli (pure). */
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { table } from '#lib/base/table.ts'
import { linesText } from '../command-result.ts'
import { countAddresses, PROBLEM_KINDS, type AddressProblem } from './problems.ts'
import { heldAddresses, holderName, useFinder, type AddressView } from './view.ts'

export interface CheckTextInput {
  readonly view: AddressView
  readonly problems: readonly AddressProblem[]
  readonly showAll: boolean
  readonly showProblems: boolean
}

export function checkText({ view, problems, showAll, showProblems }: CheckTextInput): string {
  const { held, ofPods } = countAddresses(view)
  const kinds = Object.entries(PROBLEM_KINDS).map(([kind, about]) => ({ count: problems.filter((one) => one.kind === kind).length, about }))
  const parts = [
    linesText([
      `${view.blocks.length} blocks, ${view.pools.length} pools, ${view.nodes.length} nodes, ${view.pods.length} pods`,
      `${held} addresses are given away, ${ofPods} are of pods`,
    ]),
    ...(showAll ? [`${addressTable(view)}\n`] : []),
    ...(showProblems && problems.length > 0 ? [`${problemTable(problems)}\n`] : []),
    linesText(kinds.filter(({ count }) => count > 0).map(({ count, about }) => `${count} ${about}`)),
    `Check complete; found ${problems.length} problems.\n`,
  ]
  return parts.filter((part) => part !== '').join('\n')
}

function addressTable({ blocks, pods }: AddressView): string {
  const useOf = useFinder(pods)
  const rows = heldAddresses(blocks).map((held) => {
    const { addr, block, holder } = held
    return [formatAddr(addr), formatCidr(block.cidr), block.node, holderName(holder), useOf(held) === undefined ? 'leaked' : 'in use']
  })
  return table([['IP', 'BLOCK', 'NODE', 'GIVEN TO', 'STATE'], ...rows])
}

function problemTable(problems: readonly AddressProblem[]): string {
  const rows = problems.map(({ kind, address = '-', block = '-', reason }) => [kind, address, block, reason])
  return table([['PROBLEM', 'IP', 'BLOCK', 'WHY'], ...rows])
}
