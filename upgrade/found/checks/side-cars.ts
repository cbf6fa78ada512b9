// SPDX-License-Identifier: Apache-2.0
/** Application layer policy, whose side-cars are not part of this version. Layer: upgrade (pure). */
import { fieldsOf } from '#lib/base/object.ts'
import { namesText } from '#lib/control/names-text.ts'
import { hasSideCar, SIDE_CAR } from '#lib/preflight/side-car.ts'
import type { Refusal } from '../../refusal.ts'
import type { Check } from '../check.ts'
import { nameOf, objectsOf, resourceText } from '../objects.ts'
import type { Traits } from '../traits.ts'

/** By which a service mesh adds containers to pods. */
export const INJECTOR = { namespace: 'istio-system', name: 'istio-sidecar-injector' } as const

const WHY = 'application layer policy is not supported'

export const SIDE_CAR_REFUSALS: readonly Check[] = [
  { when: 'pods have side-cars of application layer policy, in BPF mode', find: (traits) => (traits.isBpf ? sideCars(traits) : []) },
]

export const SIDE_CAR_WARNINGS: readonly Check[] = [
  { when: 'pods have side-cars of application layer policy, in Standard mode', find: (traits) => (traits.isBpf ? [] : sideCars(traits)) },
]

function sideCars({ facts }: Traits): readonly Refusal[] {
  const pods = objectsOf(facts, '', 'Pod').filter(hasSideCar)
  const injectors = objectsOf(facts, '', 'ConfigMap').filter(
    ({ metadata: { namespace, name }, data }) =>
      namespace === INJECTOR.namespace &&
      name === INJECTOR.name &&
      Object.values(fieldsOf(data)).some((text) => String(text).includes(SIDE_CAR)),
  )
  return [
    ...injectors.map((injector) => ({
      ...{ resource: resourceText(injector), field: 'data', value: SIDE_CAR },
      ...{ reason: `${WHY}, and new pods get its side-car`, remedy: "Put the mesh's own template in its place" },
    })),
    ...(pods.length === 0
      ? []
      : [
          {
            ...{ resource: `Pod ${namesText(pods.map(nameOf))}`, field: `spec.containers[${SIDE_CAR}]`, value: undefined },
            ...{ reason: WHY, remedy: 'Restart their workloads once the injector adds it no more' },
          },
        ]),
  ]
}
