// SPDX-License-Identifier: Apache-2.0
/** What the kernel has of policy, as rows. Layer: agent/dataplane. */
import { DIMENSION_OWN, DIMENSION_PEER, DIMENSION_PORT, DIMENSION_SOURCE_PORT } from '#lib/base/bpf-constants.ts'
import type { Addr } from '#lib/base/ip.ts'
import { MapError } from '#lib/base/errors.ts'
import type { Dimension, EndValue, PolicyRowOf } from '#agent/compile/policy/tables.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeText } from '#agent/maps/byte-rows.ts'
import { cidrOf, type BindMap } from '../maps/encode-rows.ts'
import { textOfWords } from '#lib/base/bytes.ts'
import type { MapTable } from '../maps/map-table.ts'
import type { KernelPolicy } from '#agent/compile/policy/transition/restart.ts'

const DIMENSIONS: readonly Dimension[] = [DIMENSION_PEER, DIMENSION_OWN, DIMENSION_PORT, DIMENSION_SOURCE_PORT]

/** Throws MapError before the tables were read back. */
export function readKernelPolicy(tables: Readonly<Record<'bits' | 'nets' | 'addrs' | 'hosts', MapTable>>, bind: BindMap): KernelPolicy {
  const [bits, nets, addrs] = [bind(catalogue.np_bits), bind(catalogue.np_nets), bind(catalogue.np_addrs)]
  const hosts = bind(catalogue.np_hosts)
  const ends = [...actual(tables.addrs, 'np_addrs')].map(([key, value]): readonly [Addr, EndValue] => {
    const { identity, ingress, egress, staged_ingress, staged_egress } = decodeText(addrs.value, value)
    return [decodeText(addrs.key, key), { identity, ingress, egress, stagedIngress: staged_ingress, stagedEgress: staged_egress }]
  })
  return {
    bits: () =>
      [...actual(tables.bits, 'np_bits')].flatMap(([text, value]): PolicyRowOf<'bits'>[] => {
        const { dimension: number, ...key } = decodeText(bits.key, text)
        const dimension = DIMENSIONS.find((one) => one === number)
        const { word, sure } = decodeText(bits.value, value)
        return dimension === undefined ? [] : [{ table: 'bits', key: { ...key, dimension }, value: { word: textOfWords(word), sure } }]
      }),
    nets: [...actual(tables.nets, 'np_nets')].map(([key, value]): PolicyRowOf<'nets'> => {
      return { table: 'nets', key: { cidr: cidrOf(decodeText(nets.key, key)) }, value: { identity: decodeText(nets.value, value) } }
    }),
    ends: new Map(ends),
    hostSets: new Set([...actual(tables.hosts, 'np_hosts').values()].flatMap((value) => Object.values(decodeText(hosts.value, value)))),
  }
}

function actual(table: MapTable, map: string): ReadonlyMap<string, string> {
  const rows = table.actual()
  if (rows === undefined) throw new MapError({ map, op: 'update', reason: 'nothing was read back yet' })
  return rows
}
