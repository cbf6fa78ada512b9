// SPDX-License-Identifier: Apache-2.0
/** Whether the account that runs an upgrade may do all of it. Layer: upgrade. */
import type { ApiClient } from '#lib/api/client.ts'
import { fieldsOf } from '#lib/base/object.ts'
import type { Refusal } from '../refusal.ts'

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const REVIEW = {
  ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
  spec: { resourceAttributes: { verb: '*', group: '*', resource: '*' } },
}

/** A run that is refused half way leaves the datastore locked: so all is asked for before. */
export async function rightsRefusals(client: Pick<ApiClient, 'request'>, signal: AbortSignal): Promise<readonly Refusal[]> {
  const answer = await client.request({ method: 'POST', path: PATH, body: REVIEW, signal })
  if (fieldsOf(fieldsOf(answer)['status'])['allowed'] === true) return []
  return [
    {
      ...{ resource: 'the account of this kubeconfig', field: '', value: undefined },
      reason:
        'an upgrade reads owners of all kinds, and writes definitions, roles and admission policies: not all of that is allowed to it',
      remedy: 'Use an account that has the cluster role cluster-admin',
    },
  ]
}
