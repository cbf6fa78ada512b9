// SPDX-License-Identifier: Apache-2.0
/** Whether our own readers take an object, and what they do not obey of it. Layer: upgrade (pure). */
import type { Rejected } from '#lib/base/result.ts'
import { FieldError, under } from '#lib/kube/parse/fields.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { pathOf, valueAt } from './edit.ts'
import type { Difference, Fault, V3Object } from './outcome.ts'

export interface Accepted {
  /** empty: it is taken */
  readonly faults: readonly Fault[]
  /** parts that stay in the object, and are not in force */
  readonly unused: readonly Difference[]
}

export function acceptedBy(object: V3Object): Accepted {
  const { isWhole, rejected } = object.kind === 'ControllersConfiguration' ? readConfiguration(object) : readByKind(object)
  const at = ({ path }: Reported): unknown => valueAt(object, pathOf(path))
  if (!isWhole) return { faults: rejected.map((one) => ({ field: one.path, value: at(one), reason: one.reason })), unused: [] }
  const unused = rejected.map((one) => ({ field: one.path, before: at(one), after: at(one), why: `is not in force: ${one.reason}` }))
  return { faults: [], unused }
}

type Reported = Pick<Rejected, 'path' | 'reason'>

interface Read {
  readonly isWhole: boolean
  readonly rejected: readonly Reported[]
}

function readByKind(object: V3Object): Read {
  const identified = identify(object)
  if (identified.kind === 'rejected') return { isWhole: false, rejected: [identified.rejected] }
  if (identified.kind === 'foreign') return { isWhole: false, rejected: [{ path: 'kind', reason: 'is not a kind of this version' }] }
  const parsed = parseObject(object, identified.ref)
  return { isWhole: parsed.kind === 'ok', rejected: parsed.rejected }
}

/** Agents do not read it. */
function readConfiguration({ spec = {} }: V3Object): Read {
  try {
    under('spec', () => controllersConfigurationSpec.read(spec))
    return { isWhole: true, rejected: [] }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return { isWhole: false, rejected: [thrown] }
  }
}
