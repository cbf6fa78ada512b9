// SPDX-License-Identifier: Apache-2.0
/** What an installation before this version holds, with its pods and their addresses → what is to be made here.
 * Layer: upgrade (pure). */
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { AddressFinding } from './ipam/findings.ts'
import { readAddresses, type AddressInput } from './ipam/read.ts'
import type { Outcome } from './outcome.ts'
import { inOrder, readStored, withoutConflicts, type StoredInput } from './read.ts'

export type InstallationInput = StoredInput & Pick<AddressInput, 'pods' | 'nodes' | 'now'>

export interface ReadInstallation {
  /** in the order in which the objects are to be made: see `STAGES` */
  readonly outcomes: readonly Outcome[]
  /** one for each address that a pod, node or service has or had */
  readonly findings: readonly AddressFinding[]
}

export function readInstallation(input: InstallationInput): ReadInstallation {
  const { outcomes, addresses } = readStored(input)
  const { pods, nodes, now } = input
  const read = readAddresses({ stored: addresses, pods, nodes, now, pools: outcomes.flatMap(poolOf) })
  return { outcomes: inOrder([...outcomes, ...withoutConflicts(read.outcomes)]), findings: read.findings }
}

function poolOf(outcome: Outcome): readonly IPPool[] {
  const identified = 'object' in outcome ? identify(outcome.object) : undefined
  const parsed = 'object' in outcome && identified?.kind === 'ours' ? parseObject(outcome.object, identified.ref) : undefined
  return parsed?.kind === 'ok' && parsed.value.kind === 'IPPool' ? [parsed.value] : []
}
