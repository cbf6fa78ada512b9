// SPDX-License-Identifier: Apache-2.0
/** Where packets of a flow go next. Layer: cli (pure). */
import { formatAddr } from '#lib/base/ip.ts'
import { enumValue, type Btf } from '#agent/maps/btf.ts'
import type { Question } from '../report.ts'
import { flagNames } from '../enum-names.ts'
import type { FlowLeg } from './flows.ts'

/** `undecided`: none has come that way yet. */
export interface NextHop {
  readonly by: 'pod' | 'device' | 'tunnel' | 'stack' | 'undecided'
  readonly interface: string | null
  /** the other end of the tunnel */
  readonly node: string | null
  readonly flags: readonly string[]
}

export function nextHopOf(btf: Btf, interfaceName: Question['interfaceName']): (leg: FlowLeg) => NextHop {
  const words = flagNames(btf, 'leg_flag')
  // the tunnel first: a tunnelled flow leaves by a device as well
  const ways = [
    ['tunnel', 'LEG_ENCAP'],
    ['pod', 'LEG_POD'],
    ['device', 'LEG_NEIGH'],
    ['stack', 'LEG_STACK'],
  ] as const
  const bits = ways.map(([by, name]) => ({ by, bit: enumValue(btf, 'leg_flag', name) }))
  return ({ flags, ifindex, via }) => {
    const by = bits.find(({ bit }) => (flags & bit) !== 0)?.by ?? 'undecided'
    return {
      by,
      interface: by === 'undecided' || by === 'stack' || ifindex === 0 ? null : interfaceName(ifindex),
      node: by === 'tunnel' ? formatAddr(via) : null,
      flags: words(flags),
    }
  }
}

export function nextHopText({ by, interface: name, node }: NextHop): string {
  return [by, ...(by === 'tunnel' ? [node ?? ''] : name === null ? [] : [name])].join(' ')
}
