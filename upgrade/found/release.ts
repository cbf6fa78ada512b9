// SPDX-License-Identifier: Apache-2.0
/** The release of the chart that the operator is of, by its annotations or by Helm's record. Layer: upgrade (pure). */
import { compareNumbers } from '#lib/base/order.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { UpgradeFacts } from './facts.ts'
import { objectsOf } from './objects.ts'

/** Of charts before 3.23, which kept their record here. */
const OLD_NAMESPACE = 'default'
const OUR_RELEASE = 'netplane'

/** Of the operator's namespace, while its Deployment is made anew by a chart: the values, as JSON. */
export const CHART_VALUES = 'upgrade.netplane.io/chart-values'

export interface Release {
  readonly namespace: string
  readonly name: string
  /** its last revision: "deployed", "pending-upgrade"; empty: there is no record of it */
  readonly status: string
  /** the record of its last revision */
  readonly record: ApiObject | undefined
}

/** Undefined: no release has the operator. */
export function releaseOf(operator: ApiObject, facts: UpgradeFacts): Release | undefined {
  const { annotations = {}, namespace: own = '' } = operator.metadata
  const name = annotations['meta.helm.sh/release-name'] ?? ''
  const namespace = annotations['meta.helm.sh/release-namespace'] ?? own
  const records = recordsIn(facts)
  if (name !== '') return withRecord(namespace, name, records)
  const other =
    records.find((record) => record.namespace === own) ??
    records.find((record) => record.namespace === OLD_NAMESPACE && record.name === OUR_RELEASE)
  return other && withRecord(other.namespace, other.name, records)
}

interface Revision {
  readonly namespace: string
  readonly name: string
  readonly number: number
  readonly record: ApiObject
}

function withRecord(namespace: string, name: string, records: readonly Revision[]): Release {
  const own = records.filter((record) => record.namespace === namespace && record.name === name)
  const record = own.toSorted((a, b) => compareNumbers(b.number, a.number))[0]?.record
  return { namespace, name, record, status: record?.metadata.labels?.['status'] ?? '' }
}

/** "sh.helm.release.v1.netplane.v3", of releases that were not taken away. */
function recordsIn(facts: UpgradeFacts): readonly Revision[] {
  return objectsOf(facts, '', 'Secret').flatMap((record): readonly Revision[] => {
    const { labels = {}, namespace = '', name } = record.metadata
    const [, release, number] = /^sh\.helm\.release\.v1\.(.+)\.v(\d+)$/.exec(name) ?? []
    if (labels['owner'] !== 'helm' || release === undefined || labels['status'] === 'uninstalled') return []
    return [{ namespace, name: release, number: Number(number), record }]
  })
}
