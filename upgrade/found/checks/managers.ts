// SPDX-License-Identifier: Apache-2.0
/** Other programs that look after what an upgrade changes. Layer: upgrade (pure). */
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { declaredManagers, IGNORE, MANAGED_BY, managerText, OWNER, type DeclaredManager } from '#lib/control/declared-managers.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { Refusal } from '../../refusal.ts'
import type { Check } from '../check.ts'
import { groupOf, isOurGroup, objectsOf, resourceText } from '../objects.ts'
import { OPERATOR, type Traits } from '../traits.ts'
import { installationIn } from '../variant.ts'

/** Values of the label that stand for no program which puts changes back. */
const HARMLESS: readonly string[] = ['Helm', 'kubectl', OPERATOR]
const HELM = 'meta.helm.sh/release-name'
/** Both mean that the operator leaves an object alone; older versions know the second. */
const LEFT_ALONE = [IGNORE, `unsupported.${IGNORE}`] as const
/** Beside the DaemonSet of the agents, in its namespace. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['netplane-controllers', 'netplane-typha'],
  ConfigMap: ['netplane-config', 'canal-config'],
}

export const MANAGER_REFUSALS: readonly Check[] = [
  { when: 'another program looks after it', find: managed },
  { when: 'the operator was told to leave the agents alone', find: leftAlone },
]

export const MANAGER_WARNINGS: readonly Check[] = [{ when: 'another program looks after the Installation', find: managedInstallation }]

function managed(traits: Traits): readonly Refusal[] {
  const { main, operator } = traits
  const parts = [main?.daemonSet, operator, ...partsOf(traits)].filter((part) => part !== undefined)
  return [
    ...parts.flatMap((part) => managersOf(part, traits).map((manager) => managedRefusal(resourceText(part), manager))),
    ...controllersOf(traits),
    ...managedDefinitions(traits),
  ]
}

function partsOf({ facts, main }: Traits): readonly ApiObject[] {
  const isPart = ({ kind, metadata }: ApiObject): boolean =>
    metadata.namespace === main?.namespace && PARTS[kind]?.includes(metadata.name) === true
  return [...objectsOf(facts, 'apps', 'Deployment'), ...objectsOf(facts, '', 'ConfigMap')].filter(isPart)
}

/** Those who put back what is changed, by marks that can be taken away; Helm does so for releases of other charts. An
 * owner may be the Installation: {@link controllersOf} tells of others. */
function managersOf(object: ApiObject, { release }: Traits): readonly DeclaredManager[] {
  return declaredManagers(object).filter(({ key, value }) => {
    if (key === OWNER) return false
    if (key === MANAGED_BY) return !HARMLESS.includes(value)
    return key !== HELM || value !== release?.name
  })
}

function managedRefusal(resource: string, manager: DeclaredManager): Refusal {
  const { who, key, value } = manager
  return {
    ...{ resource, field: `metadata['${key}']`, value },
    reason: `${managerText(manager)} looks after it, and puts back what is changed`,
    remedy: `Let ${who} give it up first, without deleting it, and take the mark away`,
  }
}

/** Of many definitions one line for each manager. */
function managedDefinitions(traits: Traits): readonly Refusal[] {
  const all = objectsOf(traits.facts, 'apiextensions.k8s.io', 'CustomResourceDefinition')
  const marked = all
    .filter(({ spec }) => isOurGroup(textOf(fieldsOf(spec)['group'])))
    .flatMap((definition) => managersOf(definition, traits).map((manager) => ({ name: definition.metadata.name, manager })))
  return [...Map.groupBy(marked, ({ manager }) => managerText(manager)).values()].flatMap((some) => {
    const [first] = some
    return first === undefined ? [] : [managedRefusal(`CustomResourceDefinition ${namesText(some.map(({ name }) => name))}`, first.manager)]
  })
}

/** A DaemonSet that another object controls than the Installation. */
function controllersOf({ main }: Traits): readonly Refusal[] {
  if (main === undefined) return []
  const { daemonSet } = main
  const isForeign = ({ apiVersion, controller }: Readonly<Record<string, unknown>>): boolean =>
    controller === true && !isOurGroup(groupOf({ apiVersion: textOf(apiVersion) }))
  const owners = objectsIn(daemonSet.metadata['ownerReferences']).filter(isForeign)
  return owners.map(({ kind, name }) => ({
    ...{ resource: resourceText(daemonSet), field: 'metadata.ownerReferences', value: `${textOf(kind)} ${textOf(name)}` },
    reason: 'another object controls it, whose program puts back what is changed',
    remedy: 'Upgrade by that program, or take the reference away',
  }))
}

function leftAlone({ main, method }: Traits): readonly Refusal[] {
  if (main === undefined || method === 'manifest') return []
  const { annotations = {} } = main.daemonSet.metadata
  return LEFT_ALONE.filter((key) => annotations[key] === 'true').map((key) => ({
    ...{ resource: resourceText(main.daemonSet), field: `metadata.annotations['${key}']`, value: 'true' },
    reason: 'the operator leaves it as it is, so its nodes would keep the old version',
    remedy: `kubectl -n ${main.namespace} annotate daemonset ${main.daemonSet.metadata.name} ${key}-`,
  }))
}

function managedInstallation(traits: Traits): readonly Refusal[] {
  const installation = installationIn(traits.facts)
  const managers = installation === undefined ? [] : managersOf(installation, traits)
  return managers.map((manager) => managedRefusal('Installation default', manager))
}
