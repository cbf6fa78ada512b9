// SPDX-License-Identifier: Apache-2.0
/** What an account may do, by rules and as the server has it. Layer: test. */
import type { ApiClient } from '#lib/api/client.ts'
import { objectPath, type ApiObject, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import type { RbacRule } from '#lib/render/account.ts'

/** A token of the account as made by hand; with a node: as its pod there has it. */
export async function issueToken(admin: ApiClient, account: Named, node?: ApiObject): Promise<string> {
  const of = node && { apiVersion: 'v1', kind: 'Node', name: node.metadata.name, uid: node.metadata.uid }
  const spec = { audiences: [], expirationSeconds: 3600, ...(of && { boundObjectRef: of }) }
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const answer = await admin.request({ method: 'POST', path: objectPath(account, 'token'), body })
  const status = isObject(answer) ? answer['status'] : undefined
  const token = isObject(status) ? status['token'] : undefined
  if (typeof token !== 'string') throw new Error('no token')
  return token
}

/** "get pods." – "bind roles.rbac.authorization.k8s.io netplane-node" */
export function permissions(rules: readonly RbacRule[]): readonly string[] {
  const all = rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [''] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => resourceNames.map((name) => `${verb} ${resource}.${group}${name === '' ? '' : ` ${name}`}`)),
      ),
    ),
  )
  return [...new Set(all)].sort()
}

/** Those of the client's account in a namespace, without what every account has. */
export async function permissionsOf(client: ApiClient, namespace: string): Promise<readonly string[]> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } }
  const answer = await client.request({ method: 'POST', path: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', body: review })
  const status = isObject(answer) ? answer['status'] : undefined
  const known = isObject(status) && Array.isArray(status['resourceRules']) ? status['resourceRules'].filter(isRule) : []
  return permissions(known.filter(({ apiGroups }) => !/^(authorization|authentication)\.k8s\.io$/.test(apiGroups.join())))
}

function isRule(value: unknown): value is RbacRule {
  return isObject(value) && ['apiGroups', 'resources', 'verbs'].every((key) => Array.isArray(value[key]))
}
