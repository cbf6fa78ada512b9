// SPDX-License-Identifier: Apache-2.0
/** A network that loses the tunnel's packets, and what the nodes say of it. Nodes a and b are neighbours; the way to c
 * is by a router. Layer: test. */
import { listAt, textAt } from '../../../lab/raw.ts'
import { mustRun } from '../../../lab/processes/command.ts'
import { FAMILIES, nodeAddress, NODES, type NodeName, type Wishes, type World } from './world.ts'

/** Three rounds of ten seconds and what is under way, or programs that are loaded anew and a round. */
export const SOON = { timeout: 100_000, interval: 2000 }

const HEADERS = { 4: 'ip', 6: 'ip6' } as const

export function wishes(bpfTunnelUDPChecksum: 'Enabled' | 'Disabled' = 'Disabled'): Wishes {
  return { pools: { vxlanMode: 'Always' }, endpoints: ['c-1'], felix: { bpfTunnelUDPChecksum } }
}

export class LossyNetwork {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** Of the tunnel's packets to node c, from it, or both. Some kernels show those of a bridge to the router as well. */
  async lose(what: string, ends: readonly ('saddr' | 'daddr')[] = ['saddr', 'daddr']): Promise<void> {
    const ways = FAMILIES.flatMap((family) => ends.map((end) => `${HEADERS[family]} ${end} ${nodeAddress('c', family)}`))
    await this.#nft(
      'add table inet wire',
      'add chain inet wire forward { type filter hook forward priority 0; }',
      ...ways.map((way) => `add rule inet wire forward ${way} udp dport 4789 ${what} drop`),
    )
  }

  async loseNothing(): Promise<void> {
    await this.#nft('flush ruleset')
  }

  /** What the node's condition says; empty: it holds. */
  async said(node: NodeName): Promise<string> {
    const { agents, topology } = this.#world.lab
    const { text } = await agents.get({ node, port: topology.healthPort, path: '/readiness' })
    const report: unknown = JSON.parse(text)
    const condition = listAt(report, 'conditions').find((one) => textAt(one, 'name') === 'network.tunnel')
    if (condition === undefined) throw new Error(`node ${node} has no such condition`)
    return textAt(condition, 'reason') ?? ''
  }

  /** What {@link said} says of each node. */
  async all(of: (text: string) => unknown = (text) => text): Promise<unknown> {
    return await Promise.all(NODES.map(async (node) => of(await this.said(node))))
  }

  async #nft(...lines: readonly string[]): Promise<void> {
    await mustRun(['ip', 'netns', 'exec', this.#world.lab.topology.fabric.netns, 'nft', lines.join('; ')])
  }
}

/** Of both families, both directions, each once. */
export function losses(text: string): string[] {
  return [...new Set(text.match(/(to and from|from|to) node . over IPv[46]: [^;]*? are lost/g))].sort()
}

/** As {@link losses} has them: of these nodes, in both families. */
export function lossesOf(nodes: readonly NodeName[], what: string, direction = 'to and from'): string[] {
  return nodes.flatMap((node) => ['IPv4', 'IPv6'].map((family) => `${direction} node ${node} over ${family}: ${what} are lost`))
}
