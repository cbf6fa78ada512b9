// SPDX-License-Identifier: Apache-2.0
/** Variables of the old agents that are fields of FelixConfiguration. Layer: upgrade (pure).
 *
 * What becomes of a field is decided where stored objects are read: the rules of that kind are asked here with one
 * field. */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { layerFromEnvironment } from '#agent/config/layers.ts'
import { applyRules, type Ruled } from '../../stored/edit.ts'
import { API_VERSION, type Raw } from '../../stored/outcome.ts'
import { kindOf } from '../../stored/read-object.ts'
import { carried, left, refused, type EditOutcome } from '../edit.ts'
import type { Decide } from '../rule.ts'

export const felixVariable: Decide = ({ steps, mine }) => {
  const name = (steps.at(-1) ?? '').slice(1, -1)
  if (mine === undefined) return left('what FelixConfiguration says counts without it')
  if (typeof mine !== 'string') return refused('its value is not said in words', 'Write its value, or set the field of FelixConfiguration.')
  return felixField(layerFromEnvironment({ [name]: mine }).spec)
}

/** Of a spec with one field. */
export function felixField(spec: Raw): EditOutcome {
  const { object, differences, faults } = ruled(spec)
  const [fault] = faults
  if (fault !== undefined) return refused(fault.reason, 'Set it to another value, or take it away.')
  const [before, after] = [fieldsOf(ruled({}).object.spec), fieldsOf(object.spec)]
  const [field] = Object.keys(after).filter((key) => !deepEqual(before[key], after[key]))
  if (field === undefined) return left(differences.find((one) => one.after === undefined)?.why ?? 'agents do so without it')
  const value = after[field]
  // a field of a group
  const [part] = isObject(value) ? Object.keys(value) : []
  return part === undefined ? carried('felix', [field], value) : carried('felix', [field, part], fieldsOf(value)[part])
}

function ruled(spec: Raw): Ruled {
  const reading = kindOf('FelixConfiguration')?.reading
  const rules = reading?.how === 'carried' ? reading.rules({ name: 'default', tier: '', environment: {} }) : []
  return applyRules({ apiVersion: API_VERSION, kind: 'FelixConfiguration', metadata: { name: 'default' }, spec }, rules)
}
