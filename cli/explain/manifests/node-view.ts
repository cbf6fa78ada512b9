// SPDX-License-Identifier: Apache-2.0
/** What one node's agent would write: services, addresses and tables of policy, compiled when they are asked for.
 * Layer: cli (pure). */
import { atOnce } from '#lib/base/async/slices.ts'
import { ADDR_EXTERNAL, ADDR_SELF, ADDR_SERVICE, FAILSAFE_IN, OWN_SLOTS } from '#lib/base/bpf-constants.ts'
import { isWithin, protocolNumber, type Addr, type Cidr } from '#lib/base/ip.ts'
import type { FailsafePort, Failsafes } from '#lib/model/failsafe.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { Compiler } from '#agent/compile/compile.ts'
import type { AddrRow, BackendRow, FrontendRow, ListId, Row } from '#agent/compile/desired.ts'
import { setId } from '#agent/compile/services/list-ids.ts'
import { isServices } from '#agent/compile/row-keys.ts'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import type { Config } from '#agent/config/config.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { configurationsOf } from '#agent/config/layers.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { frontendOf } from '../frontend.ts'

export interface Frontend extends FrontendRow {
  /** "namespace/name" */
  readonly service: string
}

export type BackendValue = BackendRow['value']

interface Rows {
  readonly frontends: ReadonlyMap<string, Frontend>
  readonly backends: ReadonlyMap<ListId, readonly BackendValue[]>
  readonly addrs: ReadonlyMap<Addr, AddrRow['value']>
  readonly ranges: ReadonlyMap<ListId, readonly Cidr[]>
  readonly overlay: readonly Cidr[]
  readonly failsafes: Failsafes
}

interface PolicyOfNode {
  readonly tables: PolicyTables
  readonly ruleName: (number: number) => string | undefined
}

export class NodeView {
  readonly name: string
  readonly config: Config
  readonly #snapshot: Snapshot
  #rows: Rows | undefined
  #policy: PolicyOfNode | undefined

  constructor(name: string, snapshot: Snapshot) {
    this.name = name
    this.#snapshot = snapshot
    this.config = resolveConfig(configurationsOf(snapshot.felixConfigurations, name), undefined).config
  }

  /** Where packets to this address and port are translated here. */
  frontend(addr: Addr, port: number, proto: number): Frontend | undefined {
    const { frontends } = this.#compiled()
    return frontendOf(
      addr,
      (one) => frontends.get(frontendKey(one, port, proto)),
      (one) => this.addr(one),
    )
  }

  backends(list: ListId): readonly BackendValue[] {
    return this.#compiled().backends.get(list) ?? []
  }

  addr(addr: Addr): AddrRow['value'] | undefined {
    return this.#compiled().addrs.get(addr)
  }

  isSelf(addr: Addr): boolean {
    return this.addr(addr)?.kind === ADDR_SELF
  }

  /** Is it within a set of prefixes, of a list or RANGE_…? */
  isInRange(set: ListId | number, addr: Addr): boolean {
    return isWithin(this.#compiled().ranges.get(typeof set === 'number' ? setId(set) : set) ?? [], addr)
  }

  /** Do packets from here to this pod of another node go in the tunnel? */
  isOverlay(addr: Addr): boolean {
    return isWithin(this.#compiled().overlay, addr)
  }

  /** Those that the endpoints of the API server are among. */
  get failsafes(): Failsafes {
    return this.#compiled().failsafes
  }

  get policy(): PolicyOfNode {
    if (this.#policy !== undefined) return this.#policy
    const compiler = new PolicyCompiler()
    const tables = new PolicyTables()
    tables.apply(compiler.change(new PolicyFeed(this.name).all(this.#snapshot)))
    this.#policy = { tables, ruleName: (number) => compiler.ruleName(number) }
    return this.#policy
  }

  #compiled(): Rows {
    if (this.#rows !== undefined) return this.#rows
    const input = { snapshot: this.#snapshot, settings: this.config.compile }
    this.#rows = rowsOf(atOnce(new Compiler(this.name).compileAll(input)).fragments)
    return this.#rows
  }
}

function frontendKey(addr: Addr, port: number, proto: number): string {
  return `${addr}${proto} ${port}`
}

function rowsOf(fragments: readonly { readonly owner: string; readonly rows: readonly Row[] }[]): Rows {
  const frontends = new Map<string, Frontend>()
  const backends = new Map<ListId, BackendValue[]>()
  const addrs = new Map<Addr, AddrRow['value']>()
  const ranges = new Map<ListId, Cidr[]>()
  const overlay: Cidr[] = []
  const failsafes: { readonly inbound: FailsafePort[]; readonly outbound: FailsafePort[] } = { inbound: [], outbound: [] }
  for (const { owner, rows } of fragments)
    for (const row of rows) {
      if (row.table === 'frontends')
        frontends.set(frontendKey(row.key.addr, row.key.port, protocolNumber(row.key.proto)), {
          ...row,
          service: owner.slice(owner.indexOf('/') + 1),
        })
      else if (row.table === 'backends') {
        // by those from there on no packet is sent
        if (row.key.slot < OWN_SLOTS) put(backends, row.key.list, row.value)
      } else if (row.table === 'addrs') {
        // any other owner of a service's address goes before it, and among services the one whose cluster address it is
        const known = addrs.get(row.key.addr)
        const isFirst = known === undefined || (row.value.kind === ADDR_SERVICE && (known.flags & ADDR_EXTERNAL) !== 0)
        if (isFirst || !isServices(row)) addrs.set(row.key.addr, row.value)
      } else if (row.table === 'failsafes') {
        const { direction, protocol, port, cidr: net } = row.key
        failsafes[direction === FAILSAFE_IN ? 'inbound' : 'outbound'].push({ protocol, port, net })
      } else if (row.table === 'ranges') put(ranges, row.key.set, row.key.cidr)
      else if (row.table === 'routes') overlay.push(row.key.cidr)
    }
  return { frontends, backends, addrs, ranges, overlay, failsafes }
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const known = map.get(key)
  if (known === undefined) map.set(key, [value])
  else known.push(value)
}
