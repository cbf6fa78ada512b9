// SPDX-License-Identifier: Apache-2.0
/** Tables of policy as the kernel would hold them: rows by key. Layer: agent. */
import { PORTS_SMALL, RULE_WORDS } from '#lib/base/bpf-constants.ts'
import { prefixKey, type Addr } from '#lib/base/ip.ts'
import type { Bits } from '#agent/compile/policy/rulesets/bits.ts'
import { rowKey } from '#agent/compile/policy/tables.ts'
import type { Dimension, EndValue, HostValue, PolicyRow, PolicyRowOf, PolicyStep, SetId } from '#agent/compile/policy/tables.ts'

/** What the programs look up. */
export interface PolicyLookup {
  bits(key: PolicyRowOf<'bits'>['key']): PolicyRowOf<'bits'>['value'] | undefined
  ports(key: PolicyRowOf<'ports'>['key']): PolicyRowOf<'ports'>['value'] | undefined
  page(set: SetId, page: number): PolicyRowOf<'pages'>['value'] | undefined
  rule(set: SetId, index: number): PolicyRowOf<'rules'>['value'] | undefined
  end(addr: Addr): EndValue | undefined
  /** by key of the endpoint */
  host(endpoint: string): HostValue | undefined
  /** of the longest prefix that the address is in */
  net(addr: Addr): number | undefined
}

/** Bits of one kind, RULES_…, that a row of ports has itself. */
export function bitsInRow({ flags, cell }: PolicyRowOf<'ports'>['value'], kind: number): Bits {
  const words = (flags & PORTS_SMALL) === 0 ? RULE_WORDS : 1
  return cell.slice(8 * words * kind, 8 * words * (kind + 1))
}

export class PolicyTables implements PolicyLookup {
  readonly rows = new Map<string, PolicyRow>()

  apply(steps: readonly PolicyStep[]): void {
    for (const step of steps) this.take(step)
  }

  take(step: PolicyStep): void {
    if (step.kind === 'epoch') return
    for (const row of step.rows) this.write(row, step.kind === 'delete')
  }

  /** One map operation. */
  write(row: PolicyRow, isGone: boolean): void {
    if (isGone) this.rows.delete(rowKey(row))
    else this.rows.set(rowKey(row), row)
  }

  bits(key: { readonly set: SetId; readonly class: number; readonly block: number; readonly dimension: Dimension }) {
    const row = this.rows.get(`bits ${key.set} ${key.block} ${key.dimension} ${key.class}`)
    return row?.table === 'bits' ? row.value : undefined
  }

  ports({ set, block, proto, source }: PolicyRowOf<'ports'>['key']) {
    const row = this.rows.get(`ports ${set} ${block} ${proto} ${source}`)
    return row?.table === 'ports' ? row.value : undefined
  }

  page(set: SetId, page: number) {
    const row = this.rows.get(`pages ${set} ${page}`)
    return row?.table === 'pages' ? row.value : undefined
  }

  rule(set: SetId, index: number) {
    const row = this.rows.get(`rules ${set} ${index}`)
    return row?.table === 'rules' ? row.value : undefined
  }

  end(addr: Addr) {
    const row = this.rows.get(`ends ${addr}`)
    return row?.table === 'ends' ? row.value : undefined
  }

  host(endpoint: string) {
    const row = this.rows.get(`hosts ${endpoint}`)
    return row?.table === 'hosts' ? row.value : undefined
  }

  /** The map knows no families: IPv4 is within ::ffff:0:0/96, which is within ::/0. */
  net(addr: Addr): number | undefined {
    for (let keep = 128; keep >= 0; keep--) {
      const row = this.rows.get(`nets ${prefixKey(addr, keep)}`)
      if (row?.table === 'nets') return row.value.identity
    }
    return undefined
  }
}
