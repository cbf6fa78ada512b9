// SPDX-License-Identifier: Apache-2.0
/** What is told of an installation by its objects, whether or not it can be upgraded. Layer: upgrade (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { parseVersion, versionText } from '#lib/base/text/version.ts'
import { readClusterInformation } from '#lib/kube/objects/cluster-information.ts'
import { GROUP } from '#lib/kube/resources.ts'
import { agentsIn, versionOf, type Agents } from './agents.ts'
import type { UpgradeFacts } from './facts.ts'
import type { Method } from './found.ts'
import { isAggregated, objectsOf, STORED_GROUP } from './objects.ts'
import { CHART_VALUES, releaseOf, type Release } from './release.ts'
import { isBpf } from './variant.ts'

export const OPERATOR = 'netplane-operator'

export interface Traits {
  readonly facts: UpgradeFacts
  readonly agents: readonly Agents[]
  /** those that an upgrade is about; undefined: there are none, or it cannot be told which */
  readonly main: Agents | undefined
  /** its Deployment */
  readonly operator: ApiObject | undefined
  readonly release: Release | undefined
  readonly method: Method
  /** "3.27.0"; undefined: nothing says it */
  readonly version: string | undefined
  readonly isBpf: boolean
  /** ClusterInformation default as older versions store it */
  readonly stored: ApiObject | undefined
  /** and as this version has it */
  readonly own: ApiObject | undefined
}

export function traitsOf(facts: UpgradeFacts): Traits {
  const agents = agentsIn(facts)
  const stored = informationIn(facts, STORED_GROUP)
  const own = isAggregated(facts) ? undefined : informationIn(facts, GROUP)
  const main = mainOf(agents, stored !== undefined && isLocked(stored) && own !== undefined)
  const operator = objectsOf(facts, 'apps', 'Deployment').find(({ metadata }) => metadata.name === OPERATOR) ?? betweenCharts(facts)
  const release = operator && releaseOf(operator, facts)
  return {
    ...{ facts, agents, main, operator, release, stored, own },
    method: operator === undefined ? 'manifest' : release === undefined ? 'operator' : 'chart',
    version: (main && versionOf(main)) ?? versionIn(main?.isOurs === true ? own : stored),
    isBpf: main !== undefined && isBpf(main, facts),
  }
}

/** A run that was cut off has taken its Deployment away, and the chart may not have made it again. */
export function betweenCharts(facts: UpgradeFacts): ApiObject | undefined {
  const namespace = objectsOf(facts, '', 'Namespace').find(({ metadata }) => metadata.annotations?.[CHART_VALUES] !== undefined)
  if (namespace === undefined) return undefined
  return asApiObject({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: namespace.metadata.name, name: OPERATOR } })
}

/** Once the stored objects are imported, agents of this version may stand beside those that they replace. */
function mainOf(agents: readonly Agents[], isImported: boolean): Agents | undefined {
  const [first, ...others] = agents
  if (others.length === 0) return first
  const old = agents.filter(({ isOurs }) => !isOurs)
  const isOne = old.length === 1 && agents.length === 2 && agents.every(({ namespace }) => namespace === first?.namespace)
  return isImported && isOne ? old[0] : undefined
}

export function isLocked(information: ApiObject): boolean {
  return readClusterInformation(information).datastoreReady === false
}

function informationIn(facts: UpgradeFacts, group: string): ApiObject | undefined {
  return objectsOf(facts, group, 'ClusterInformation').find(({ metadata }) => metadata.name === 'default')
}

function versionIn(information: ApiObject | undefined): string | undefined {
  const said = information && parseVersion(readClusterInformation(information).netplaneVersion ?? '')
  return said && versionText(said)
}
