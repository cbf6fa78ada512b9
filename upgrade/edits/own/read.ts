// SPDX-License-Identifier: Apache-2.0
/** An installation of this form → its edits, and what the resources of the next version are to say. Layer: upgrade
 * (pure).
 *
 * What its version has installed is what this version renders. What earlier ones did not have is in the rules (ADDED);
 * once they had something otherwise, it belongs here, by version. What a newer version has otherwise is not known:
 * there the one that wrote the whole object is believed to have written the field by itself. */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { keepSelector } from '#lib/render/kept-selector.ts'
import type { Raw } from '../../stored/outcome.ts'
import { appliedBy } from '../applied.ts'
import { collect, merged } from '../collect.ts'
import { destinationOf } from '../destinations.ts'
import { differences, resourceText } from '../differences.ts'
import { left, refused, type Difference, type EditOutcome, type Edits } from '../edit.ts'
import { comparable } from '../comparable.ts'
import { managersIn, valueIn } from '../managers.ts'
import type { Surroundings } from '../rule.ts'
import { OWN_TABLES } from './rules.ts'

export interface OwnInput {
  /** as this version renders them, with what was carried before */
  readonly rendered: readonly ApiObject[]
  /** the same, as the file of that way has it: it knows no platform */
  readonly usual: readonly ApiObject[]
  /** as rendered without what was carried */
  readonly bare: readonly ApiObject[]
  /** of the cluster */
  readonly live: readonly ApiObject[]
  /** fields of an Installation's spec that were carried before */
  readonly carried: Raw
  /** "3.31.6": the version that is installed, where it is newer than this one */
  readonly newer: string | undefined
  /** which of the objects are left as they are */
  readonly isDone: (live: ApiObject, rendered: ApiObject) => boolean
}

/** `installation` has what was carried before as well. */
export function ownEdits(input: OwnInput, around: Surroundings): Edits {
  const { rendered, usual, bare, live, carried, newer } = input
  const open = rendered.filter((object) => isOpen(input, object))
  const bareValue = valuesIn(bare)
  const applied = appliedBy(rendered)
  const isUsual = new Set(differencesOf(usual, live).map(keyOf))
  const found = differencesOf(open, live).filter((edit) => isUsual.has(keyOf(edit)))
  const edits = collect(
    found.map((edit) => {
      const wasCarried = edit.mine === undefined && edit.steps.length > 0 && bareValue(edit) === undefined
      const outcome = wasCarried ? CARRIED : destinationOf(edit, around, OWN_TABLES)
      return { ...edit, outcome: newer === undefined ? outcome : unlessItsOwn({ edit, outcome, live, newer }), applied: applied(edit) }
    }),
  )
  return { ...edits, installation: merged(carried, withWholeResources(edits.installation, live)) }
}

const PART_OF = 'app.kubernetes.io/part-of'

const CARRIED = refused(
  'an earlier upgrade has carried it, and it would be there again',
  'Take it out of the annotation upgrade.netplane.io/carried of the DaemonSet as well.',
)

/** It is there, of this form, and is going to be written. A run that was cut off leaves objects of an older form beside
 * agents of this one: what was edited of those was carried when it began. */
function isOpen({ live, isDone }: OwnInput, object: ApiObject): boolean {
  const found = live.find((one) => isSame(one, object))
  return found !== undefined && isOfThisForm(found, object) && !isDone(found, object)
}

/** A workload by what it runs, anything else by its label. */
function isOfThisForm(found: ApiObject, rendered: ApiObject): boolean {
  const wanted = programsOf(rendered)
  if (wanted.length === 0) return found.metadata.labels?.[PART_OF] === rendered.metadata.labels?.[PART_OF]
  const there = new Set(programsOf(found))
  return wanted.some((program) => there.has(program))
}

/** "netplane-node netplane-start" */
function programsOf({ spec }: ApiObject): readonly string[] {
  const pod = fieldsOf(fieldsOf(fieldsOf(spec)['template'])['spec'])
  return objectsIn(pod['containers']).map(({ name, command }) => `${textOf(name)} ${Array.isArray(command) ? textOf(command[0]) : ''}`)
}

function isSame(one: ApiObject, other: ApiObject): boolean {
  return resourceText(one) === resourceText(other) && groupOf(one) === groupOf(other)
}

function groupOf({ apiVersion }: ApiObject): string {
  return apiVersion.replace(/\/?v\d\w*$/, '')
}

/** A workload of an older form has kept its selector. */
function differencesOf(base: readonly ApiObject[], live: readonly ApiObject[]): readonly Difference[] {
  return differences(
    base.map((object) =>
      keepSelector(
        object,
        live.find((one) => isSame(one, object)),
      ),
    ),
    live,
  )
}

function keyOf({ resource, field }: Difference): string {
  return `${resource} ${field}`
}

function valuesIn(objects: readonly ApiObject[]): (at: Pick<Difference, 'resource' | 'steps'>) => unknown {
  const all = new Map(objects.map((object) => [resourceText(object), comparable(object)]))
  return ({ resource, steps }) => valueIn(all.get(resource), steps)
}

interface OfNewer {
  readonly edit: Difference
  readonly outcome: EditOutcome
  readonly live: readonly ApiObject[]
  readonly newer: string
}

/** What is refused only where another than the writer of the whole object has written it. */
function unlessItsOwn({ edit, outcome, live, newer }: OfNewer): EditOutcome {
  if (outcome.kind !== 'refused' || outcome === CARRIED) return outcome
  const object = live.find((one) => resourceText(one) === edit.resource)
  const writers = object === undefined ? [] : managersIn(object)(['spec', 'selector'], {})
  const isItsOwn = edit.managers.every((manager) => writers.includes(manager))
  return isItsOwn ? left(`v${newer} has it by itself, or its file was edited: which of the two is not known here`) : outcome
}

const OVERRIDES = [
  ['nodePods', 'DaemonSet'],
  ['controllerPods', 'Deployment'],
] as const

/** Resources of pods are said as a whole: with one that was changed come the others. */
function withWholeResources(installation: Raw, live: readonly ApiObject[]): Raw {
  return OVERRIDES.reduce<Raw>((spec, [pods, kind]) => {
    const overrides = fieldsOf(spec[pods])
    const names = ['netplane-node', 'netplane-controllers']
    const container = live
      .filter((object) => object.kind === kind)
      .flatMap(({ spec: own }) => objectsIn(fieldsOf(fieldsOf(fieldsOf(own)['template'])['spec'])['containers']))
      .find(({ name }) => names.includes(String(name)))
    if (overrides['resources'] === undefined || container === undefined) return spec
    return { ...spec, [pods]: { ...overrides, resources: container['resources'] } }
  }, installation)
}
