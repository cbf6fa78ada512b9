// SPDX-License-Identifier: Apache-2.0
/** Service accounts of a test's cluster: tokens that live as long as is wanted, and what their owner may do.
 * Layer: test. */
import { createPrivateKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ApiClient } from '#lib/api/client.ts'
import { pluralOf, type ApiObject } from '#lib/api/resource.ts'
import { WATCHED } from '#lib/api/watch/watch-list.ts'

const ISSUER = 'https://kubernetes.default.svc'

/** The server takes a token for a minute longer than it says. */
const LEEWAY_S = 60

/** As the API server signs it, but for a time it would not give: taken for so many seconds from now. */
export function tokenFor(account: ApiObject, keyFile: string, seconds: number): string {
  const { name, namespace = '', uid } = account.metadata
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    ...{
      iss: ISSUER,
      aud: [ISSUER],
      sub: `system:serviceaccount:${namespace}:${name}`,
      iat: now - 600,
      nbf: now - 600,
      exp: now + seconds - LEEWAY_S,
    },
    'kubernetes.io': { namespace, serviceaccount: { name, uid } },
  }
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'ES256', typ: 'JWT' })}.${part(claims)}`
  const key = createPrivateKey(readFileSync(keyFile, 'utf8'))
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** May list and watch what is asked for, and nothing else. */
export async function allowToWatch(client: ApiClient, account: ApiObject): Promise<void> {
  const role = account.metadata.name
  const rules = WATCHED.map(({ apiVersion, kind }) => ({
    apiGroups: [apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''],
    resources: [pluralOf(kind)],
    verbs: ['list', 'watch'],
  }))
  const rbac = 'rbac.authorization.k8s.io'
  await client.apply({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: role }, rules })
  await client.apply({
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: role },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: role, namespace: account.metadata.namespace }],
  })
}
