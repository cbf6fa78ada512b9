// SPDX-License-Identifier: Apache-2.0
/** What pinned maps make of a packet's destination: the service, and its backends. Layer: cli (pure). */
import type { Addr } from '#lib/base/ip.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Frontend } from '#agent/maps/shapes.ts'
import { frontendText } from '../../bpf/services.ts'
import type { Tables } from '../../map-tables.ts'
import { frontendOf } from '../frontend.ts'
import { addressKind } from './own-address.ts'
import { endRecord, type EndRecord } from '../../text.ts'

export interface ServiceRecord {
  readonly frontend: string
  readonly choice: 'inside' | 'outside'
  readonly backends: readonly EndRecord[]
}

export interface Meant {
  /** null: none */
  readonly service: ServiceRecord | null
  /** what goes on: the packet itself, or one for each backend */
  readonly packets: readonly Packet[]
  /** of the service, to put its affinity back */
  readonly frontend: Frontend | undefined
}

export function serviceOf(tables: Tables, packet: Packet, inside: boolean): Meant {
  const frontends = tables.open(catalogue.np_frontends)
  const frontend = frontendOf(
    packet.dst,
    (addr) => frontends.get({ addr, port: packet.dport, proto: packet.protocol }),
    (addr) => addressKind(tables, addr),
  )
  if (frontend === undefined) return { service: null, packets: [packet], frontend }
  const packets = backendsOf(tables, frontend, inside).map(({ addr, port }) => ({ ...packet, dst: addr, dport: port }))
  const service: ServiceRecord = {
    frontend: frontendText({ addr: packet.dst, port: packet.dport, proto: packet.protocol }),
    choice: inside ? 'inside' : 'outside',
    backends: packets.map(({ dst, dport }) => endRecord({ addr: dst, port: dport })),
  }
  return { service, packets, frontend }
}

function backendsOf(tables: Tables, frontend: Frontend, inside: boolean): readonly { readonly addr: Addr; readonly port: number }[] {
  const { list, count } = inside ? frontend.inside : frontend.outside
  const table = tables.open(catalogue.np_backends)
  return Array.from({ length: count }, (_, slot) => table.get({ list, slot })).filter((backend) => backend !== undefined)
}
