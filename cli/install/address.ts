// SPDX-License-Identifier: Apache-2.0
/** Which addresses are no direct way to the API server, and why. Layer: cli (pure). */
import { isObject } from '#lib/base/object.ts'
import { tryParseAddr } from '#lib/base/ip.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { endpointOwner, isLoopbackAddr, type EndpointOwner } from '#lib/preflight/endpoint-owner.ts'

/** What of the cluster has addresses. */
export interface Inhabitants {
  readonly nodes: readonly ApiObject[]
  readonly services: readonly ApiObject[]
  /** those that may have the address */
  readonly pods: readonly ApiObject[]
}

/** Names of services, which only the cluster's own DNS knows. */
const SERVICE_NAME = /^kubernetes(\.default)?$|\.svc(\.|$)/

/** Of this machine alone: a name of it, or an address. */
export function isLoopback(host: string): boolean {
  const addr = tryParseAddr(host)
  return addr === undefined ? /^(.*\.)?localhost\.?$/.test(host) : isLoopbackAddr(addr)
}

/** Why a host is not to be in the config map; undefined: it may be. */
export function refusalOf(host: string, { nodes, services, pods }: Inhabitants): string | undefined {
  if (isLoopback(host)) return 'is a loopback address: on a node it is the node itself'
  if (SERVICE_NAME.test(host)) return 'is the name of a service, which only the DNS of the cluster knows'
  const service = services.find((one) => clusterAddresses(one).some((address) => isSame(address, host)))
  if (service !== undefined) return `is the ClusterIP of service ${nameOf(service)}, which nothing serves before the agents do`
  const owner = endpointOwner([host], { nodes, pods, ranges: [] })
  return owner && ownerText(owner)
}

function ownerText(owner: EndpointOwner): string | undefined {
  switch (owner.kind) {
    case 'pod':
    case 'range':
      return `is the address of ${owner.kind === 'pod' ? 'pod ' : ''}${owner.name}, which another pod may have tomorrow`
    case 'node':
      if (owner.planes === 1) return undefined
      return `is the address of node ${owner.name} alone, and ${owner.planes} nodes have API servers: ${BALANCED}`
  }
}

/** What an administrator is to do who has several API servers and no address for all of them. */
export const BALANCED = 'put a load balancer before them, and give its address'

function clusterAddresses({ spec }: ApiObject): readonly string[] {
  return textsOf(listIn(spec, 'clusterIPs'))
}

/** Addresses may be written in several ways. */
export function isSame(address: string, host: string): boolean {
  const addr = tryParseAddr(address)
  return addr !== undefined && addr === tryParseAddr(host)
}

export function listIn(value: unknown, name: string): readonly unknown[] {
  const list: unknown = isObject(value) ? value[name] : undefined
  return Array.isArray(list) ? list : []
}

function textsOf(values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === 'string')
}

function nameOf({ metadata: { namespace, name } }: ApiObject): string {
  return `${namespace ?? ''}/${name}`
}
