// SPDX-License-Identifier: Apache-2.0
/** Selectors of netplane.io/v3 in the fields where they stand, and what they are limited to there. Layer: lib/kube. */
import { compareText } from '../../../base/order.ts'
import { NAMESPACE_LABEL, NAMESPACE_PREFIX, SERVICE_ACCOUNT_LABEL, SERVICE_ACCOUNT_PREFIX } from '../../../model/labels.ts'
import { ALL, and, has, mapLeaves, not, withPrefix } from '../../../model/selector/selector.ts'
import type { Selector } from '../../../model/selector/selector.ts'
import { FieldError } from '../fields.ts'
import { inNamespace } from './common.ts'
import type { SideValues } from '../../schema/v3-rules.ts'

export interface SubjectValues {
  readonly selector: Selector | undefined
  readonly namespaceSelector: Selector | undefined
  readonly serviceAccountSelector: Selector | undefined
}

/** The endpoints that a policy applies to. A namespaced policy applies to its namespace alone. In one of the whole
 * cluster "all" means every endpoint; once it asks for namespaces or service accounts, every endpoint that has one. */
export function subjectWith(said: SubjectValues, namespace: string): Selector {
  const { selector: own = ALL, namespaceSelector: namespaces, serviceAccountSelector: accounts } = said
  const ofAccounts = accounts && withPrefix(accounts, SERVICE_ACCOUNT_PREFIX)
  if (namespace !== '') return and(own, inNamespace(namespace), ofAccounts ?? ALL)
  const ofNamespaces = namespaces && allMeans(withPrefix(namespaces, NAMESPACE_PREFIX), NAMESPACE_LABEL)
  const inNamespaces = ofNamespaces === undefined ? own : and(allMeans(own, NAMESPACE_LABEL), ofNamespaces)
  if (ofAccounts === undefined) return inNamespaces
  return and(allMeans(inNamespaces, SERVICE_ACCOUNT_LABEL), allMeans(ofAccounts, SERVICE_ACCOUNT_LABEL))
}

function allMeans(selector: Selector, label: string): Selector {
  return mapLeaves(selector, (leaf) => (leaf.op === 'all' ? has(label) : leaf))
}

/** Which endpoints and sets an end of a rule is. As soon as a namespaced policy asks for any, they are those of its
 * namespace, unless it says which namespaces it means. Undefined: nothing is asked. */
export function peerSelector(side: SideValues, namespace: string): Selector | undefined {
  const { selector: own, namespaceSelector: namespaces } = side
  const accounts = side.serviceAccounts && accountsWith(side.serviceAccounts)
  const asked = [accounts, own].filter((part) => part !== undefined)
  if (namespaces !== undefined) return and(ofNamespaces(namespaces), ...asked)
  if (namespace !== '' && (asked.length > 0 || side.notSelector !== undefined)) return and(inNamespace(namespace), ...asked)
  return asked.length === 0 ? undefined : and(...asked)
}

/** all(): whatever is in a namespace; global(): whatever is in none. */
function ofNamespaces(selector: Selector): Selector {
  return mapLeaves(selector, (leaf) => {
    if (leaf.op === 'all') return has(NAMESPACE_LABEL)
    if (leaf.op === 'global') return not(has(NAMESPACE_LABEL))
    return withPrefix(leaf, NAMESPACE_PREFIX)
  })
}

/** Both must hold where both are given. */
function accountsWith({ names, selector }: NonNullable<SideValues['serviceAccounts']>): Selector | undefined {
  const parts: Selector[] = []
  if (selector !== undefined) parts.push(withPrefix(selector, SERVICE_ACCOUNT_PREFIX))
  if (names.length > 0) parts.push({ op: 'in', label: SERVICE_ACCOUNT_LABEL, values: [...new Set(names)].sort(compareText) })
  return parts.length === 0 ? undefined : and(...parts)
}

/** Of services: "namespace" may be left out where the policy has one. */
export function serviceAt(
  said: NonNullable<SideValues['services']>,
  namespace: string,
): { readonly namespace: string; readonly name: string } {
  const where = said.namespace ?? namespace
  if (where === '') throw new FieldError('namespace', 'is missing')
  return { namespace: where, name: said.name }
}
