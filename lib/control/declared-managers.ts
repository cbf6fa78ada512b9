// SPDX-License-Identifier: Apache-2.0
/** Who looks after an object, as its owner, labels and annotations say. Layer: lib/control (pure). */
import { objectsIn, textOf } from '../base/object.ts'
import type { ApiObject } from '../api/resource.ts'

/** Label of every object that the operator renders. */
export const MANAGED_BY = 'app.kubernetes.io/managed-by'

/** Key of the manager that is an owner. */
export const OWNER = 'ownerReferences'

/** An object that the operator renders and that has this, with the value "true", is left as it is. */
export const IGNORE = 'operator.netplane.io/ignore'

/** Key of a label or annotation, and who writes it; empty: its value says who. */
const MANAGERS: readonly (readonly [key: string, who: string])[] = [
  ['argocd.argoproj.io/tracking-id', 'Argo CD'],
  ['argocd.argoproj.io/instance', 'Argo CD'],
  ['kustomize.toolkit.fluxcd.io/name', 'Flux'],
  ['helm.toolkit.fluxcd.io/name', 'Flux'],
  ['meta.helm.sh/release-name', 'Helm'],
  ['addonmanager.kubernetes.io/mode', 'the addon manager'],
  ['objectset.rio.cattle.io/owner-name', 'the addon controller of k3s'],
  [MANAGED_BY, ''],
]

export interface DeclaredManager {
  /** "Argo CD" */
  readonly who: string
  readonly key: string
  readonly value: string
}

/** Of several the one that puts changes back comes first. */
export function declaredManagers({ metadata }: ApiObject): readonly DeclaredManager[] {
  const { labels = {}, annotations = {} } = metadata
  const said = MANAGERS.flatMap(([key, who]) => {
    const value = annotations[key] ?? labels[key] ?? ''
    return value === '' ? [] : [{ who: who === '' ? value : who, key, value }]
  })
  return [...controllers(metadata['ownerReferences']), ...said]
}

/** The object whose controller makes this one: "Addon kube-proxy". Its namespace, if it has one, is the same. Owners
 * that are no controllers change nothing. */
function controllers(references: unknown): readonly DeclaredManager[] {
  return objectsIn(references).flatMap(({ controller, apiVersion, kind, name }) =>
    controller === true ? [{ who: `${textOf(kind)} ${textOf(name)}`, key: OWNER, value: textOf(apiVersion) }] : [],
  )
}

/** "Argo CD (argocd.argoproj.io/instance: net)" */
export function managerText({ who, key, value }: DeclaredManager): string {
  return `${who} (${key}: ${value})`
}
