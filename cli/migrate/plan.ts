// SPDX-License-Identifier: Apache-2.0
/** The way from host endpoints of all interfaces to automatic ones: what each node needs, and what is in the way.
 * Layer: cli (pure). */
import { isObject } from '#lib/base/object.ts'
import { compareText } from '#lib/base/order.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { CREATED_BY, isAutomatic } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { HostEndpoint } from '#lib/model/policy.ts'
import type { PolicyWorld } from '#lib/policy/peers.ts'
import { WILDCARD } from '#lib/policy/host.ts'
import { configuredBy } from '#controllers/config/configuration.ts'
import { HOST_ENDPOINTS } from '#controllers/host-endpoints/changes.ts'
import { desiredEndpoints } from '#controllers/host-endpoints/desired.ts'
import { nodeFacts } from '#controllers/host-endpoints/node-facts.ts'
import { differences } from './differences.ts'

export interface MigrationInput {
  readonly endpoints: readonly ApiObject[]
  readonly nodes: readonly ApiObject[]
  readonly networks: readonly ApiObject[]
  readonly configuration: ApiObject | undefined
  /** of all policies */
  readonly world: PolicyWorld
}

export interface NodePlan {
  readonly node: string
  /** to be deleted, sorted by name: the first counts at present */
  readonly old: readonly ApiObject[]
  /** that the node is to get */
  readonly labels: Readonly<Record<string, string>>
  /** the automatic endpoint has been made, with these labels */
  readonly isReady: boolean
  /** what is in the way; empty: nothing */
  readonly problems: readonly string[]
}

export interface MigrationPlan {
  readonly nodes: readonly NodePlan[]
  /** automatic endpoints are still to be asked for */
  readonly isToEnable: boolean
  /** nodes that have no endpoint of all interfaces, and get one */
  readonly newNodes: readonly string[]
  /** of the cluster as a whole */
  readonly problems: readonly string[]
}

export function planMigration(input: MigrationInput): MigrationPlan {
  const { endpoints, nodes, networks, configuration } = input
  const { settings, rejected } = configuredBy(configuration, undefined)
  const { autoCreate, createDefault, syncLabels } = settings.hostEndpoints
  const problems = [
    ...rejected.map(({ path, reason }) => `ControllersConfiguration default: ${path}: ${reason}`),
    ...(createDefault ? [] : ['ControllersConfiguration default: createDefaultHostEndpoint is Disabled']),
    ...(syncLabels ? [] : ['ControllersConfiguration default: syncLabels is Disabled: labels of nodes would not come to the endpoints']),
  ]
  const old = endpoints.filter((object) => isWildcard(object) && !isAutomatic(object)).sort((a, b) => compareText(nameOf(a), nameOf(b)))
  const byNode = Map.groupBy(old, nodeOf)
  const labels = new Map([...byNode].map(([node, of]) => [node, labelsOf(of)]))
  const facts = nodeFacts(
    nodes.map((node) => withLabels(node, labels.get(nameOf(node)) ?? {})),
    networks,
  )
  const wanted = desiredEndpoints(facts, { ...settings.hostEndpoints, autoCreate: true })
  const planned = [...byNode].map(([node, of]): NodePlan => {
    const known = nodes.find((one) => nameOf(one) === node)
    const own = labels.get(node) ?? {}
    const made = endpoints.find((object) => isAutomatic(object) && isWildcard(object) && nodeOf(object) === node)
    const predicted = [...wanted.endpoints.values()].find(({ spec }) => spec.node === node && spec.interfaceName === WILDCARD)
    const isReady = made !== undefined && Object.entries(own).every(([key, value]) => made.metadata.labels?.[key] === value)
    const next = isReady
      ? made
      : predicted && asApiObject({ ...HOST_ENDPOINTS, metadata: { name: predicted.name, labels: predicted.labels }, spec: predicted.spec })
    const inTheWay = [
      ...labelProblems(known, of),
      ...(wanted.waiting.has(node) ? ['its agent has not said its interfaces, or is too old to'] : []),
    ]
    return { node, old: of, labels: missing(known, own), isReady, problems: [...inTheWay, ...judged(input.world, of, next)] }
  })
  const newNodes = facts.map(({ name }) => name).filter((name) => !byNode.has(name))
  return { nodes: planned, isToEnable: !autoCreate, newNodes: autoCreate ? [] : newNodes, problems }
}

function judged(world: PolicyWorld, old: readonly ApiObject[], next: ApiObject | undefined): readonly string[] {
  if (next === undefined) return []
  const [before, [after]] = [old.flatMap((object) => endpointOf(object) ?? []), [endpointOf(next)]]
  const [active] = before
  return active === undefined || after === undefined ? ['it cannot be read'] : differences(world, { active, before, after })
}

function endpointOf(object: ApiObject): HostEndpoint | undefined {
  const parsed = parseObject(object, { kind: 'HostEndpoint', namespace: '', name: nameOf(object) })
  return parsed.kind === 'ok' && parsed.value.kind === 'HostEndpoint' ? parsed.value : undefined
}

/** A node that has another value keeps it, so it has to be chosen by hand. */
function labelProblems(node: ApiObject | undefined, old: readonly ApiObject[]): readonly string[] {
  if (node === undefined) return ['there is no Node of this name: an automatic endpoint is never made']
  const said = [node, ...old].flatMap((object) => Object.entries(copied(object)))
  const values = Map.groupBy(said, ([key]) => key)
  return [...values].flatMap(([key, all]) => {
    const different = [...new Set(all.map(([, value]) => value))]
    return different.length < 2 ? [] : [`label ${key} has the values ${different.map((value) => JSON.stringify(value)).join(' and ')}`]
  })
}

function labelsOf(old: readonly ApiObject[]): Readonly<Record<string, string>> {
  return Object.assign({}, ...old.map(copied)) as Readonly<Record<string, string>>
}

function copied({ metadata: { labels = {} } }: ApiObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => key !== CREATED_BY))
}

function missing(node: ApiObject | undefined, labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([key, value]) => node?.metadata.labels?.[key] !== value))
}

function withLabels(node: ApiObject, more: Readonly<Record<string, string>>): ApiObject {
  return { ...node, metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...more } } }
}

function isWildcard({ spec }: ApiObject): boolean {
  return isObject(spec) && spec['interfaceName'] === WILDCARD
}

function nodeOf({ spec }: ApiObject): string {
  return isObject(spec) && typeof spec['node'] === 'string' ? spec['node'] : ''
}

function nameOf({ metadata }: ApiObject): string {
  return metadata.name
}
