// SPDX-License-Identifier: Apache-2.0
/** What a workload runs. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'

/** Of each container. */
export function workloadImages({ spec }: ApiObject): readonly string[] {
  const pod = fieldsOf(fieldsOf(fieldsOf(spec)['template'])['spec'])
  return objectsIn(pod['containers']).map(({ image }) => textOf(image))
}

/** Of the first one; empty: there is none. */
export function workloadImage(workload: ApiObject): string {
  return workloadImages(workload)[0] ?? ''
}
