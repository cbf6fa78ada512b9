// SPDX-License-Identifier: Apache-2.0
/** The holder of each address: by the blocks in the API server, by the pods there, and by what the plugin has told
 * runtimes. Layer: soak (pure). */
import type { IPBlock } from '#lib/model/ip-block.ts'
import { formatAddr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { addrAt } from '#lib/base/range.ts'
import type { Made } from './kubelet.ts'

export interface Tellings {
  /** of one node after the other */
  readonly made: ReadonlyMap<string, readonly Made[]>
  readonly blocks: readonly IPBlock[]
  /** by pod: status.podIPs */
  readonly told: ReadonlyMap<string, readonly string[]>
}

/** A line for each address that is held and not used, used and not held, or told otherwise; and for two pods that
 * have one. Empty: all agree. */
export function addressFaults({ made, blocks, told }: Tellings): string[] {
  const used = [...made].flatMap(([node, all]) => all.flatMap((one) => one.addresses.map((addr) => usage(node, { ...one, addr }))))
  const held = blocks.flatMap(({ cidr, node, held }) =>
    [...held].map(([index, holder]) => usage(node, { ...holder, addr: formatAddr(addrAt(cidr, index)) })),
  )
  const pods = [...made.values()].flat()
  return [
    ...held.filter((line) => !used.includes(line)).map((line) => `leaked: ${line}`),
    ...used.filter((line) => !held.includes(line)).map((line) => `used, but in no block: ${line}`),
    ...twice(blocks.flatMap(({ cidr, held }) => [...held.keys()].map((index) => formatAddr(addrAt(cidr, index))))),
    ...twice(pods.flatMap(({ addresses }) => addresses)),
    ...pods.flatMap(({ pod, addresses }) => {
      const said = told.get(pod) ?? []
      return said.join() === addresses.join() ? [] : [`${pod}: status says ${said.join() || 'nothing'}, the plugin ${addresses.join()}`]
    }),
    ...[...told.keys()].filter((pod) => !pods.some((one) => one.pod === pod)).map((pod) => `${pod}: has no sandbox`),
  ]
}

function usage(
  node: string,
  one: { readonly addr: string; readonly namespace: string; readonly pod: string; readonly containerId: string },
): string {
  return `${node}: ${one.addr} of ${one.namespace}/${one.pod}, ${one.containerId}`
}

function twice(addresses: readonly string[]): string[] {
  const sorted = addresses.toSorted(compareText)
  return sorted.filter((addr, at) => addr === sorted[at - 1]).map((addr) => `${addr}: twice`)
}

/** Sees at once when an address is given to one while another has it. */
export class Uniqueness {
  readonly #faults: string[] = []

  get faults(): readonly string[] {
    return this.#faults
  }

  /** `others`: of all nodes, this one perhaps among them. */
  note(made: Made, others: readonly Made[]): void {
    for (const other of others.filter(({ containerId }) => containerId !== made.containerId))
      for (const addr of other.addresses.filter((one) => other.state === 'ready' && made.addresses.includes(one)))
        // the second sandbox of a pod takes the place of the first
        if (other.pod !== made.pod) this.#faults.push(`${addr} is that of ${made.pod}, and of ${other.pod}`)
  }
}
