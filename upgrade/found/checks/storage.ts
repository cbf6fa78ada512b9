// SPDX-License-Identifier: Apache-2.0
/** What resources are stored as, and whether they may be moved. Layer: upgrade (pure). */
import { fieldsOf, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION } from '#lib/kube/operator-resources.ts'
import { GROUP, VERSION } from '#lib/kube/resources.ts'
import type { Refusal } from '../../refusal.ts'
import { textsIn } from '../agents.ts'
import type { Check } from '../check.ts'
import { groupOf, isOurGroup, objectsOf, resourceText, STORED_GROUP } from '../objects.ts'
import { isLocked, type Traits } from '../traits.ts'
import { datastoreOf } from '../variant.ts'
import { deletedRefusal } from './installation.ts'

/** The one version that each group is stored in. */
export const STORED_VERSIONS: Readonly<Record<string, string>> = {
  [STORED_GROUP]: 'v1',
  [GROUP]: VERSION,
  [OPERATOR_GROUP]: OPERATOR_VERSION,
}

export const STORAGE_REFUSALS: readonly Check[] = [
  { when: 'a definition has objects stored in several versions', find: storedVersions },
  { when: 'a definition is being deleted', find: deletedDefinitions },
  { when: 'the stored resources of an older version are not there', find: missing },
  { when: 'a DatastoreMigration is there', find: migrations },
  { when: 'both the stored resources and those of this version are written', find: both },
]

export const STORAGE_WARNINGS: readonly Check[] = [{ when: 'the datastore is locked', find: locked }]

function definitionsIn({ facts }: Traits): readonly ApiObject[] {
  const all = objectsOf(facts, 'apiextensions.k8s.io', 'CustomResourceDefinition')
  return all.filter(({ spec }) => isOurGroup(textOf(fieldsOf(spec)['group'])))
}

function storedVersions(traits: Traits): readonly Refusal[] {
  return definitionsIn(traits).flatMap((definition) => {
    const wanted = STORED_VERSIONS[textOf(fieldsOf(definition['spec'])['group'])]
    const value = textsIn(fieldsOf(definition['status'])['storedVersions'])
    if (wanted === undefined || value.every((version) => version === wanted)) return []
    const { name } = definition.metadata
    return [
      {
        ...{ resource: resourceText(definition), field: 'status.storedVersions', value },
        reason: `objects may be stored in other versions than ${wanted}`,
        remedy: `Write each again (kubectl get ${name} -A -o json | kubectl replace -f -), then leave ${wanted} alone in the list`,
      },
    ]
  })
}

function deletedDefinitions(traits: Traits): readonly Refusal[] {
  return definitionsIn(traits)
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(deletedRefusal)
}

/** Agents of older versions make a ClusterInformation as soon as they run. */
function missing({ main, stored }: Traits): readonly Refusal[] {
  if (main === undefined || main.isOurs || stored !== undefined || datastoreOf(main) === 'etcd') return []
  return [
    {
      ...{ resource: `ClusterInformation.${STORED_GROUP} default`, field: '', value: undefined },
      reason: `agents of an older version run, and what they keep as ${STORED_GROUP}/v1 is not there`,
      remedy: `Give the objects of ${STORED_GROUP} as well; where the server has none, see whether another program has moved them`,
    },
  ]
}

function migrations({ facts }: Traits): readonly Refusal[] {
  const all = facts.objects.filter((object) => object.kind === 'DatastoreMigration' && isOurGroup(groupOf(object)))
  return all.map((migration) => ({
    ...{ resource: resourceText(migration), field: 'status.phase', value: fieldsOf(migration['status'])['phase'] },
    reason: 'it moves the stored resources itself',
    remedy: 'Let it come to its end or take it back, as the version that has made it says',
  }))
}

/** An upgrade locks the stored resources before it writes those of this version, and they stay locked. */
function both({ main, stored, own }: Traits): readonly Refusal[] {
  if (main === undefined || stored === undefined || own === undefined) return []
  if (isLocked(stored) || isLocked(own)) return []
  return [
    {
      ...{ resource: `ClusterInformation.${GROUP} default`, field: 'spec.datastoreReady', value: true },
      reason: `objects of ${GROUP}/${VERSION} are there, and those of ${STORED_GROUP}/v1 are not locked: both may have been written`,
      remedy: `Delete those that nodes do not go by: ${main.isOurs ? `of ${STORED_GROUP}` : `of ${GROUP}, with their definitions`}`,
    },
  ]
}

function locked({ main, stored, own }: Traits): readonly Refusal[] {
  const information = main?.isOurs === false ? stored : own
  if (information === undefined || !isLocked(information) || (main?.isOurs === false && own !== undefined)) return []
  return [
    {
      ...{ resource: `ClusterInformation.${groupOf(information)} default`, field: 'spec.datastoreReady', value: false },
      reason: 'the datastore is locked, by an upgrade that was cut off or by another move',
      remedy: 'See that no other move is under way: this upgrade unlocks it at its end',
    },
  ]
}
