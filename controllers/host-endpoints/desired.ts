// SPDX-License-Identifier: Apache-2.0
/** Nodes → the host endpoints that are made for them by themselves. Layer: controllers (pure). */
import { formatAddr, isWithin, type Addr } from '#lib/base/ip.ts'
import { CONTROLLERS_NAME, CREATED_BY } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { DEFAULT_ALLOW_PROFILE } from '#lib/model/effective-labels.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { HostEndpointSettings, HostEndpointTemplate } from '../config/settings.ts'
import { endpointName } from './names.ts'
import type { NodeFacts } from './node-facts.ts'

export interface DesiredEndpoint {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly spec: {
    readonly node: string
    readonly interfaceName?: string
    readonly expectedIPs: readonly string[]
    readonly profiles: readonly string[]
  }
}

export interface DesiredEndpoints {
  /** by name */
  readonly endpoints: ReadonlyMap<string, DesiredEndpoint>
  /** nodes whose endpoints stay as they are until their agents say what they have */
  readonly waiting: ReadonlySet<string>
  /** names that two endpoints would have: the second is not made */
  readonly doubled: readonly string[]
}

/** The API server takes no more. */
const MOST_ADDRESSES = 1024
const EVERY_INTERFACE = '*'

export function desiredEndpoints(nodes: readonly NodeFacts[], settings: HostEndpointSettings): DesiredEndpoints {
  const endpoints = new Map<string, DesiredEndpoint>()
  const doubled: string[] = []
  if (!settings.autoCreate) return { endpoints, waiting: new Set(), doubled }
  for (const node of nodes)
    for (const endpoint of endpointsOf(node, settings))
      if (endpoints.has(endpoint.name)) doubled.push(endpoint.name)
      else endpoints.set(endpoint.name, endpoint)
  const waiting = nodes.filter(({ interfaces }) => interfaces === undefined)
  return { endpoints, waiting: new Set(waiting.map(({ name }) => name)), doubled }
}

function endpointsOf(node: NodeFacts, { createDefault, templates, syncLabels }: HostEndpointSettings): readonly DesiredEndpoint[] {
  if (node.interfaces === undefined) return []
  const labels = syncLabels ? node.labels : {}
  const addresses = [...new Set([...node.addresses, ...node.interfaces.flatMap((one) => one.addresses)])]
  const everything = { node, labels, interfaceName: EVERY_INTERFACE, addresses }
  return [
    ...(createDefault ? [endpoint(endpointName(node.name), everything)] : []),
    ...templates.flatMap((template) => ofTemplate(template, { node, labels, addresses })),
  ]
}

interface Made {
  readonly node: NodeFacts
  readonly labels: Readonly<Record<string, string>>
  readonly interfaceName?: string
  readonly addresses: readonly Addr[]
}

/** With a pattern one for each interface that it fits, else one for the addresses of its ranges. */
function ofTemplate(template: HostEndpointTemplate, of: Made): readonly DesiredEndpoint[] {
  const { generateName, interfaceCIDRs, interfacePattern, nodeSelector } = template
  const { node } = of
  if (nodeSelector !== undefined && !selects(nodeSelector, new Map(Object.entries(node.labels)))) return []
  const labels = { ...of.labels, ...template.labels } as Readonly<Record<string, string>>
  const ranged = (addresses: readonly Addr[]): readonly Addr[] => addresses.filter((addr) => isWithin(interfaceCIDRs, addr))
  if (interfacePattern === undefined) {
    const addresses = ranged(of.addresses)
    return addresses.length === 0 ? [] : [endpoint(endpointName(node.name, generateName), { node, labels, addresses })]
  }
  const fitting = (node.interfaces ?? []).filter(({ name }) => interfacePattern.test(name))
  return fitting.flatMap(({ name, addresses: all }) => {
    const addresses = interfaceCIDRs.length === 0 ? all : ranged(all)
    return addresses.length === 0
      ? []
      : [endpoint(endpointName(node.name, generateName, name), { node, labels, interfaceName: name, addresses })]
  })
}

function endpoint(name: string, { node, labels, interfaceName, addresses }: Made): DesiredEndpoint {
  return {
    name,
    labels: { ...labels, [CREATED_BY]: CONTROLLERS_NAME },
    spec: {
      node: node.name,
      ...(interfaceName === undefined ? {} : { interfaceName }),
      expectedIPs: addresses.slice(0, MOST_ADDRESSES).map(formatAddr),
      profiles: [DEFAULT_ALLOW_PROFILE],
    },
  }
}
