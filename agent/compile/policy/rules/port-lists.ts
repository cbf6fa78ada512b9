// SPDX-License-Identifier: Apache-2.0
/** Lists of ports, each taken apart and written once: all peers of a rule share theirs. Layer: agent/compile (pure). */
import type { PortMatch } from '#lib/model/policy.ts'
import { EMPTY, only, PORT_PROTOCOLS, rangesOf, rangesText } from './protocol-ports.ts'
import type { ProtocolPorts, Ranges } from './protocol-ports.ts'

export interface PortList {
  /** of its numbers */
  readonly ranges: Ranges
  /** the same of all protocols that have ports */
  readonly plane: ProtocolPorts
  /** each once */
  readonly names: readonly string[]
}

/** Of the rules of one policy in one direction. */
export class PortLists {
  readonly #lists = new Map<readonly PortMatch[], PortList>()
  readonly #texts = new Map<Ranges, string>()

  of(ports: readonly PortMatch[]): PortList {
    const known = this.#lists.get(ports)
    if (known !== undefined) return known
    const ranges = rangesOf(ports.flatMap((port) => ('name' in port ? [] : [[port.from, port.to] as const])))
    const names = [...new Set(ports.flatMap((port) => ('name' in port ? [port.name] : [])))]
    const list = { ranges: ranges.length === 0 ? EMPTY : ranges, plane: only(PORT_PROTOCOLS, ranges), names }
    this.#lists.set(ports, list)
    return list
  }

  /** As `rangesText` has it. */
  readonly text = (ranges: Ranges): string => {
    const known = this.#texts.get(ranges)
    if (known !== undefined) return known
    const text = rangesText(ranges)
    this.#texts.set(ranges, text)
    return text
  }
}
