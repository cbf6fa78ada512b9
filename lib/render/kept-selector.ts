// SPDX-License-Identifier: Apache-2.0
/** The selector of a workload cannot be changed: one that an older version has made keeps it, so that its pods are
 * replaced one by one. Layer: lib/render (pure). */
import type { ApiObject } from '../api/resource.ts'
import { deepEqual } from '../base/deep-equal.ts'
import { fieldsOf, isObject } from '../base/object.ts'

/** `there`: the object of this name that there is. Pods get the labels of both. A selector with expressions is kept as
 * well, and its pods are to have the labels that it wants anyway. */
export function keepSelector(rendered: ApiObject, there: ApiObject | undefined): ApiObject {
  const before = fieldsOf(there?.['spec'])['selector']
  const spec = fieldsOf(rendered['spec'])
  if (!isObject(before) || !isObject(spec['selector']) || deepEqual(before, spec['selector'])) return rendered
  const template = fieldsOf(spec['template'])
  const metadata = fieldsOf(template['metadata'])
  const labels = { ...fieldsOf(metadata['labels']), ...fieldsOf(before['matchLabels']) }
  return { ...rendered, spec: { ...spec, selector: before, template: { ...template, metadata: { ...metadata, labels } } } }
}
