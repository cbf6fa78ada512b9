// SPDX-License-Identifier: Apache-2.0
/** Which addresses a release takes back, and which it leaves. Layer: cli (pure). */
import { cidrContains, formatAddr, type Addr } from '#lib/base/ip.ts'
import { sameHolder } from '#lib/ipam/block.ts'
import type { ClusterInformationSpec } from '#lib/kube/objects/cluster-information.ts'
import { nameKey } from '#lib/model/ref.ts'
import { ClusterRefusedError } from '../cluster/guard.ts'
import type { LeakedAddress, ReadReport } from './report.ts'
import { heldAddresses, useFinder, type AddressView, type Held } from './view.ts'

export interface ReleasePlan {
  readonly release: readonly Held[]
  /** no error: others were quicker */
  readonly skipped: readonly string[]
  readonly refused: readonly string[]
}

type View = Pick<AddressView, 'blocks' | 'pods'>

/** Of a report: what has changed since it was made stays, forced or not. */
export function planLeaked(view: View, leaked: readonly LeakedAddress[]): ReleasePlan {
  const useOf = useFinder(view.pods)
  const byAddress = Map.groupBy(heldAddresses(view.blocks), ({ addr }) => addr)
  const skipped: string[] = []
  const release = leaked.flatMap(({ addr, holder }) => {
    const held = byAddress.get(addr)?.find((one) => sameHolder(one.holder, holder))
    const pod = held && useOf(held)
    if (held !== undefined && pod === undefined) return [held]
    skipped.push(
      `${formatAddr(addr)} ${pod === undefined ? 'is given back, or to another pod, by now' : `is of pod ${nameKey(pod)} by now`}`,
    )
    return []
  })
  return { release, skipped, refused: [] }
}

/** One that a pod has is taken from it by force only. */
export function planAddresses({ blocks, pods }: View, addrs: readonly Addr[], force: boolean): ReleasePlan {
  const useOf = useFinder(pods)
  const refused: string[] = []
  const release = [...new Set(addrs)].flatMap((addr) => {
    const around = blocks.filter(({ cidr }) => cidrContains(cidr, addr))
    const held = heldAddresses(around).filter((one) => one.addr === addr)
    if (held.length === 0) refused.push(`${formatAddr(addr)}: no block has given it away`)
    return held.filter((one) => {
      const pod = force ? undefined : useOf(one)
      if (pod !== undefined) refused.push(`${formatAddr(addr)}: pod ${nameKey(pod)} has it: use --force`)
      return pod === undefined
    })
  })
  return { release, skipped: [], refused }
}

export interface ReportGuardInput {
  readonly cluster: Partial<ClusterInformationSpec> | undefined
  readonly force: boolean
}

/** Throws ClusterRefusedError: of another cluster always, without the lock unless forced. */
export function mayUseReports(reports: readonly ReadReport[], { cluster, force }: ReportGuardInput): void {
  const guid = cluster?.clusterGUID
  if (guid !== undefined && reports.some(({ clusterGUID }) => clusterGUID !== null && clusterGUID !== guid))
    throw new ClusterRefusedError('the report is of another cluster')
  if (force) return
  if (cluster?.datastoreReady !== false)
    throw new ClusterRefusedError('the datastore is not locked: set datastoreReady of ClusterInformation default to false, or use --force')
  if (reports.some(({ datastoreLocked }) => !datastoreLocked))
    throw new ClusterRefusedError('the report is of a time when the datastore was not locked: check again, or use --force')
}
