// SPDX-License-Identifier: Apache-2.0
/** Arguments of `upgrade …`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import type { QuestionCommand } from '../commands.ts'
import { secondsOf, type Given } from '../given.ts'
import { CLUSTER_FLAGS, clusterChoice, type ClusterChoice } from '../install/order.ts'

export interface UpgradePlanOrder extends ClusterChoice {
  readonly kind: 'upgrade plan'
  /** directory of manifests; undefined: the cluster is asked */
  readonly resources: string | undefined
  readonly json: boolean
}

export interface UpgradeRunOrder extends ClusterChoice {
  readonly kind: 'upgrade run'
  /** the steps are looked at, and nothing is written */
  readonly dryRun: boolean
  /** what was stored before goes at the end */
  readonly finish: boolean
  /** undefined: that of this package */
  readonly chart: string | undefined
  readonly timeoutMs: number
  readonly json: boolean
}

export interface UpgradeBackOrder extends ClusterChoice {
  readonly kind: 'upgrade back'
}

export type UpgradeOrder = UpgradePlanOrder | UpgradeRunOrder | UpgradeBackOrder

const WAIT_SECONDS = 1800

export const upgradeCommands: readonly (QuestionCommand & { readonly name: UpgradeOrder['kind'] })[] = [
  {
    name: 'upgrade plan',
    about: 'how the product is installed, what an upgrade to this version does step by step, and what is in its way',
    words: '',
    flags: [
      ...CLUSTER_FLAGS,
      { name: 'resources', value: 'DIR', about: "objects as files, as 'kubectl get -o yaml' prints them; asks no cluster" },
    ],
  },
  {
    name: 'upgrade run',
    about: 'does it; one that was stopped, wherever that was, is begun again and goes on',
    words: '',
    flags: [
      ...CLUSTER_FLAGS,
      { name: 'dry-run', about: 'looks at each step, and changes nothing' },
      { name: 'finish', about: 'when all is done: deletes what older versions stored, which is the backup until then' },
      { name: 'chart', value: 'CHART', about: 'of this version, where the chart was used: folder, archive or reference' },
      { name: 'timeout', value: 'SECONDS', about: `for each workload to be on all nodes (default: ${WAIT_SECONDS})` },
    ],
  },
  {
    name: 'upgrade back',
    about: "takes one back that was stopped before 'unlock': what older versions stored is in use again",
    words: '',
    flags: CLUSTER_FLAGS,
  },
]

/** Throws ConfigError. */
export function readUpgrade(kind: UpgradeOrder['kind'], given: Given): UpgradeOrder {
  const [word] = given.words
  if (word !== undefined) throw new ConfigError(kind, `${JSON.stringify(word)} is too much`)
  const choice = clusterChoice(given)
  const json = given.has('json')
  if (kind === 'upgrade back') return { kind, ...choice }
  if (kind === 'upgrade plan') return { kind, ...choice, resources: given.text('resources'), json }
  return {
    ...{ kind, ...choice, json },
    dryRun: given.has('dry-run'),
    finish: given.has('finish'),
    chart: given.text('chart'),
    timeoutMs: secondsOf(given, WAIT_SECONDS),
  }
}
