// SPDX-License-Identifier: Apache-2.0
/** What was edited of an installation, whichever form it is of. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { objectsIn, textOf } from '#lib/base/object.ts'
import { compareVersions, parseVersion } from '#lib/base/text/version.ts'
import { operatorImageOf } from '#lib/render/image.ts'
import { OPERATOR, OPERATOR_PODS, renderOperator } from '#lib/render/operator-pod.ts'
import { merged } from '../edits/collect.ts'
import type { Edits } from '../edits/edit.ts'
import { ownEdits, type OwnInput } from '../edits/own/read.ts'
import { readEdits, surroundingsOf } from '../edits/read.ts'
import { podSpecOf, textsIn } from '../found/agents.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import type { Found } from '../found/found.ts'
import { objectsOf } from '../found/objects.ts'
import { FIELD_MANAGER } from '../storage/options.ts'
import { isApplied } from '../steps/applied.ts'
import { operatorLike } from '../steps/operator-pods.ts'
import { workloadImage } from '../steps/workload-image.ts'
import { carriedIn, targetObjects } from './target.ts'

export function editsIn(facts: UpgradeFacts, found: Found, version: string): Edits {
  if (found.variant !== undefined) return readEdits(facts, found, targetObjects({ facts, found, carried: {}, version }))
  if (found.method === 'manifest') return ownManifestEdits(facts, found, version)
  const installation = readEdits(facts, found, [])
  const operator = operatorOf(facts)
  return operator === undefined ? installation : both(installation, operatorEdits({ facts, found, version, operator }))
}

/** What an upgrade has carried is on the DaemonSet. */
function ownManifestEdits(facts: UpgradeFacts, found: Found, version: string): Edits {
  const carried = carriedIn(found.daemonSet)
  const rendered = (more: object): readonly ApiObject[] => targetObjects({ facts, found, carried, version, ...more })
  const input: OwnInput = {
    ...{ rendered: rendered({}), usual: rendered({ isUsual: true }), bare: rendered({ carried: {} }) },
    ...{ live: facts.objects, carried, newer: newerOf(found, version) },
    isDone: (live, object) => isApplied(live, object, FIELD_MANAGER),
  }
  return ownEdits(input, surroundingsOf(facts.objects, found))
}

/** Of this form. */
function operatorOf(facts: UpgradeFacts): ApiObject | undefined {
  return objectsOf(facts, 'apps', 'Deployment').find(
    (object) => object.metadata.name === OPERATOR && textsIn(objectsIn(podSpecOf(object)['containers'])[0]?.['command'])[0] === OPERATOR,
  )
}

interface OperatorInput {
  readonly facts: UpgradeFacts
  readonly found: Found
  readonly version: string
  readonly operator: ApiObject
}

/** Its agents are as the Installation says, whatever was edited of them. */
function operatorEdits({ facts, found, version, operator }: OperatorInput): Edits {
  const namespace = textOf(operator.metadata.namespace)
  const rendered = renderOperator({ namespace, image: operatorImageOf({ registry: '', imagePath: '' }, version), pods: OPERATOR_PODS })
  const next = operatorLike(operator, version).find(({ kind }) => kind === 'Deployment')
  const isDone =
    found.method === 'chart'
      ? workloadImage(operator).endsWith(`:${version}`)
      : next !== undefined && isApplied(operator, next, FIELD_MANAGER)
  const input: OwnInput = {
    ...{ rendered, usual: rendered, bare: rendered, live: facts.objects, carried: {}, newer: newerOf(found, version) },
    isDone: () => isDone,
  }
  return ownEdits(input, surroundingsOf(facts.objects, found))
}

/** Undefined: it is this version, or an older one. */
export function newerOf({ version: found }: Found, version: string): string | undefined {
  const [there, here] = [parseVersion(found), parseVersion(version)]
  return there !== undefined && here !== undefined && compareVersions(there, here) > 0 ? found : undefined
}

function both(a: Edits, b: Edits): Edits {
  return {
    ...{ edits: [...a.edits, ...b.edits], refusals: [...a.refusals, ...b.refusals] },
    ...{
      installation: merged(a.installation, b.installation),
      felix: merged(a.felix, b.felix),
      controllers: merged(a.controllers, b.controllers),
    },
  }
}
