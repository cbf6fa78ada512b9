// SPDX-License-Identifier: Apache-2.0
/** DaemonSets that run agents, of this version and of those before. Layer: upgrade (pure). */
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { by, compareText } from '#lib/base/order.ts'
import { parseVersion, versionText } from '#lib/base/text/version.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { readEnvironment, type ContainerEnvironment } from './environment.ts'
import type { UpgradeFacts } from './facts.ts'
import { nameOf, objectsOf } from './objects.ts'

type Fields = Readonly<Record<string, unknown>>

/** Of the container of the agent, in every version. */
export const CONTAINER = 'netplane-node'
/** What that container runs in this version; it ran the image's own program before. */
const OUR_PROGRAM = 'netplane-start'

export interface Agents {
  readonly daemonSet: ApiObject
  readonly namespace: string
  /** of the agent */
  readonly container: Fields
  /** "kube-flannel"; of all containers of a pod */
  readonly containers: readonly string[]
  readonly environment: ContainerEnvironment
  /** they are of this version's form: they read netplane.io/v3 */
  readonly isOurs: boolean
  /** their pods that are there */
  readonly pods: readonly ApiObject[]
}

/** In order of their names. */
export function agentsIn(facts: UpgradeFacts): readonly Agents[] {
  return objectsOf(facts, 'apps', 'DaemonSet')
    .flatMap((daemonSet) => agentsOf(daemonSet, facts))
    .toSorted(by(({ daemonSet }) => nameOf(daemonSet), compareText))
}

function agentsOf(daemonSet: ApiObject, facts: UpgradeFacts): readonly Agents[] {
  const containers = objectsIn(podSpecOf(daemonSet)['containers'])
  const container = containers.find(({ name }) => name === CONTAINER)
  if (container === undefined) return []
  const { namespace = '' } = daemonSet.metadata
  return [
    {
      ...{ daemonSet, namespace, container },
      containers: containers.map(({ name }) => textOf(name)),
      environment: readEnvironment(container, { facts, namespace }),
      isOurs: textsIn(container['command'])[0] === OUR_PROGRAM,
      pods: objectsOf(facts, '', 'Pod').filter((pod) => isOf(pod, daemonSet)),
    },
  ]
}

/** Of the pods of a workload. */
export function podSpecOf({ spec }: ApiObject): Fields {
  return fieldsOf(fieldsOf(fieldsOf(spec)['template'])['spec'])
}

export function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(textOf) : []
}

function isOf(pod: ApiObject, { metadata }: ApiObject): boolean {
  if (pod.metadata.namespace !== metadata.namespace) return false
  return objectsIn(pod.metadata['ownerReferences']).some(({ kind, name }) => kind === 'DaemonSet' && name === metadata.name)
}

/** "3.27.0": what most of them run, else what new ones will; undefined: images do not say it. */
export function versionOf({ pods, container }: Agents): string | undefined {
  const running = pods.flatMap(({ spec }) => {
    const agent = objectsIn(fieldsOf(spec)['containers']).find(({ name }) => name === CONTAINER)
    return imageVersion(textOf(agent?.['image'])) ?? []
  })
  const counted = [...Map.groupBy(running, (version) => version)].toSorted(
    ([a, some], [b, others]) => others.length - some.length || compareText(a, b),
  )
  return counted[0]?.[0] ?? imageVersion(textOf(container['image']))
}

/** Of "registry.example.com:5000/netplane/node:v3.27.0@sha256:…". */
export function imageVersion(image: string): string | undefined {
  const tag = /:([^:/]+)$/.exec(image.replace(/@.*$/, ''))?.[1] ?? ''
  const version = parseVersion(tag)
  return version && versionText(version)
}
