// SPDX-License-Identifier: Apache-2.0
/** The images of all that is rendered. Layer: lib/render (pure). */
import { isObject } from '../base/object.ts'
import { computeInstallation, type InstallationSpec } from './computed.ts'
import { imageOf, operatorImageOf } from './image.ts'
import { OPERATOR, OPERATOR_PODS, renderOperator } from './operator-pod.ts'
import { renderInstallation } from './render.ts'

/** Sorted, each once: what every container of the product in the cluster runs, the operator's among them. */
export function imagesOf(spec: InstallationSpec, version: string): readonly string[] {
  // the platform changes settings, and no image
  const computed = computeInstallation(spec, { provider: 'Generic', hasKubeProxy: false, installed: undefined })
  const objects = [
    ...renderOperator({ namespace: OPERATOR, image: operatorImageOf(computed, version), pods: OPERATOR_PODS }),
    ...renderInstallation({ namespace: 'netplane-system', image: imageOf(computed, version), computed, endpoint: undefined }),
  ]
  return [...new Set(objects.flatMap(imagesIn))].sort()
}

/** Of its containers, wherever in it they are. */
function imagesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(imagesIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, part]) => (key === 'image' && typeof part === 'string' ? [part] : imagesIn(part)))
}
