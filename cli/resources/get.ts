// SPDX-License-Identifier: Apache-2.0
/** `get`: objects as they are in the cluster. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import type { Resource } from '#lib/kube/resources.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { apiVersionOf } from './kinds.ts'
import { asNew, reasonOf } from './objects.ts'
import type { Choice, GetOrder } from './order.ts'
import { showText, type Shown } from './output.ts'
import { shownName } from './write.ts'

/** One that a name or a file chooses. */
export interface Chosen {
  readonly resource: Resource
  readonly named: Named
}

/** Some of them may not be there: the others are shown. */
export async function getChosen(client: ApiClient, order: GetOrder, chosen: readonly Chosen[]): Promise<CommandResult> {
  const errors: string[] = []
  const found: { readonly resource: Resource; readonly object: ApiObject }[] = []
  for (const { resource, named } of chosen)
    try {
      found.push({ resource, object: await client.get(named) })
    } catch (thrown) {
      errors.push(`${shownName(named)}: ${reasonOf(thrown)}`)
    }
  const byKind = Map.groupBy(found, ({ resource }) => resource)
  const shown = [...byKind].map(([resource, all]) => ({ resource, objects: all.map(({ object }) => object) }))
  const text = found.length === 0 ? '' : textOf(order, shown, { allNamespaces: order.choice.by === 'file', isOne: chosen.length === 1 })
  return { text, warnings: linesText(errors), exitCode: errors.length === 0 ? 0 : 1 }
}

export async function getKind(client: ApiClient, order: GetOrder, choice: Choice & { readonly by: 'kind' }): Promise<CommandResult> {
  const { resource, selector, allNamespaces } = choice
  const namespace = resource.namespaced && !allNamespaces ? { namespace: order.namespace } : {}
  const collection = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...namespace }
  try {
    const objects = await client.list(collection, selector === undefined ? {} : { labelSelector: selector })
    const text = textOf(order, [{ resource, objects }], { allNamespaces, isOne: false })
    return { text, warnings: objects.length === 0 ? 'No resources found\n' : '', exitCode: 0 }
  } catch (thrown) {
    return { text: '', warnings: `${resource.plural}: ${reasonOf(thrown)}\n`, exitCode: 1 }
  }
}

interface Layout {
  readonly allNamespaces: boolean
  readonly isOne: boolean
}

function textOf({ format, isExport }: GetOrder, all: readonly Shown[], layout: Layout): string {
  const shown = all.map(({ resource, objects }) => ({ resource, objects: objects.map(isExport ? exported : withoutManagers) }))
  return showText(shown, { format, now: Date.now(), ...layout })
}

/** Who has written which field is longer than all else, and of no use to a reader. */
function withoutManagers(object: ApiObject): ApiObject {
  const { name, ...others } = object.metadata
  return { ...object, metadata: { name, ...Object.fromEntries(Object.entries(others).filter(([field]) => field !== 'managedFields')) } }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** As it could be made in another cluster. */
function exported(object: ApiObject): ApiObject {
  const { apiVersion, kind, metadata, spec } = object
  const { annotations = {}, ...others } = metadata
  const kept = Object.entries(annotations).filter(([key]) => key !== LAST_APPLIED)
  return asNew({ apiVersion, kind, metadata: { ...others, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) }, spec })
}
