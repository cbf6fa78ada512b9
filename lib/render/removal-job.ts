// SPDX-License-Identifier: Apache-2.0
/** A Job that deletes the Installation and waits until it is gone, with an account for that alone.
 * Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { account, type RbacRule } from './account.ts'
import { labelsOf } from './input.ts'
import { OPENSHIFT_RULE, operatorPodSpec, type OperatorInput } from './operator-pod.ts'

export const REMOVAL = 'netplane-removal'

const RULES: readonly RbacRule[] = [
  { apiGroups: ['operator.netplane.io'], resources: ['installations'], verbs: ['get', 'delete'], resourceNames: ['default'] },
]

export interface RemovalInput extends OperatorInput {
  /** seconds */
  readonly timeout: string
}

export function renderRemoval(input: RemovalInput): readonly ApiObject[] {
  const { namespace } = input
  return [...account({ name: REMOVAL, namespace, rules: RULES, ownRules: [OPENSHIFT_RULE] }), job(input)].map(asApiObject)
}

function job(input: RemovalInput): object {
  const labels = labelsOf(REMOVAL)
  // what is still there is the pod's last word, and in its status
  const more = { terminationMessagePolicy: 'FallbackToLogsOnError' }
  const spec = operatorPodSpec(input, { account: REMOVAL, args: ['remove', `--timeout=${input.timeout}`], more })
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: REMOVAL, namespace: input.namespace, labels },
    // the program itself tries again until its time is up
    spec: { backoffLimit: 0, template: { metadata: { labels }, spec: { ...spec, restartPolicy: 'Never' } } },
  }
}
