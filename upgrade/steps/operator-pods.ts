// SPDX-License-Identifier: Apache-2.0
/** The operator of this version with what an administrator has chosen for the pods of the older one. Layer: upgrade
 * (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { operatorImageOf } from '#lib/render/image.ts'
import { mirrorOf, repositoryOf, type Mirror } from '../edits/image.ts'
import { OPERATOR_PODS, renderOperator } from '#lib/render/operator-pod.ts'

/** Of older versions. */
const IMAGE = 'netplane/operator'

type Pods = Parameters<typeof renderOperator>[0]['pods']

/** `before`: its Deployment. `version`: "3.31.5". */
export function operatorLike(before: ApiObject, version: string): readonly ApiObject[] {
  const { pods, ...mirror } = operatorPods(before)
  return renderOperator({ namespace: before.metadata.namespace ?? '', image: operatorImageOf(mirror, version), pods })
}

/** What an administrator has chosen: of its pods, and where its image is. */
export function operatorPods(before: ApiObject): Mirror & { readonly pods: Pods } {
  const template = fieldsOf(fieldsOf(before['spec'])['template'])
  const spec = fieldsOf(template['spec'])
  const [container = {}] = objectsIn(spec['containers'])
  const image = textOf(container['image'])
  const { registry = '', imagePath = '' } = (repositoryOf(image) === IMAGE ? undefined : mirrorOf(image, IMAGE)) ?? {}
  const chosen = (value: unknown, usual: object): object => (typeof value === 'object' && value !== null ? value : usual)
  const resources = fieldsOf(container['resources'])
  return {
    ...{ registry, imagePath },
    pods: {
      imagePullSecrets: chosen(spec['imagePullSecrets'], OPERATOR_PODS.imagePullSecrets),
      podAnnotations: chosen(fieldsOf(template['metadata'])['annotations'], OPERATOR_PODS.podAnnotations),
      dnsConfig: chosen(spec['dnsConfig'], OPERATOR_PODS.dnsConfig),
      resources: Object.keys(resources).length > 0 ? resources : OPERATOR_PODS.resources,
      nodeSelector: chosen(spec['nodeSelector'], OPERATOR_PODS.nodeSelector),
      tolerations: chosen(spec['tolerations'], OPERATOR_PODS.tolerations),
    },
  }
}
