// SPDX-License-Identifier: Apache-2.0
/** All that what is stored decides, compared with what it becomes. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import type { InstallationInput } from '../../stored/installation.ts'
import { addressDifferences } from './addresses.ts'
import { compareVerdicts, type ComparedVerdicts } from './compare.ts'
import { poolDifferences } from './pools.ts'
import { settingDifferences } from './settings.ts'
import { storedObjects, worldOf } from './worlds.ts'

export interface VerdictReport extends Pick<ComparedVerdicts, 'classes' | 'pairs'> {
  /** a sentence each; empty: all is as it was */
  readonly differences: readonly string[]
}

export interface Becomes {
  /** objects of this version that the stored ones become */
  readonly held: readonly ApiObject[]
  /** what judges on both sides: policies of Kubernetes, namespaces, accounts */
  readonly cluster: readonly ApiObject[]
}

export function verdictReportOf(input: InstallationInput, { held, cluster }: Becomes): VerdictReport {
  const { objects, pods, nodes, environment } = input
  const both = [...cluster, ...pods, ...nodes]
  const [before, after] = [worldOf([...storedObjects(objects), ...both]), worldOf([...held, ...both])]
  const { classes, pairs, different, differences } = compareVerdicts(before.snapshot, after.snapshot)
  const more = different - differences.length
  const blocks = held.filter(({ kind }) => kind === IP_BLOCK.kind).map(parseIPBlock)
  return {
    classes,
    pairs,
    differences: [
      ...before.unreadable.map((text) => `of what is stored ${text}`),
      ...differences,
      ...(more > 0 ? [`${more} other verdicts differ`] : []),
      ...settingDifferences({ ...before.snapshot, environment }, after.snapshot),
      ...poolDifferences(before.snapshot, after.snapshot),
      ...addressDifferences({ pods, nodes, objects, blocks }),
    ],
  }
}
