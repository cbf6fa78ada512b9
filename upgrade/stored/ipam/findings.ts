// SPDX-License-Identifier: Apache-2.0
/** What becomes of single addresses. Layer: upgrade (pure). */
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import type { Allocation } from './rows.ts'

export interface AddressFinding {
  /** `leak`: it stays given until the controllers and agents of this version find that no pod has it */
  readonly kind: 'carried' | 'leak' | 'refused'
  /** empty: the object as a whole */
  readonly address: string
  /** "shop/web", or the handle; empty: it is not known */
  readonly holder: string
  readonly reason: string
}

export function finding(kind: AddressFinding['kind'], address: Addr, of: Omit<AddressFinding, 'kind' | 'address'>): AddressFinding {
  return { kind, address: formatAddr(address), ...of }
}

/** "carried 10.0.0.5 of shop/web: …" */
export function findingText({ kind, address, holder, reason }: AddressFinding): string {
  return [`${kind} ${address}`.trim(), ...(holder === '' ? [] : [`of ${holder}`])].join(' ') + `: ${reason}`
}

export function holderText({ namespace, pod, handle }: Pick<Allocation, 'namespace' | 'pod' | 'handle'>): string {
  return pod === '' ? handle : `${namespace}/${pod}`
}
