// SPDX-License-Identifier: Apache-2.0
/** What annotations of a pod and of its namespace ask for. Layer: lib/ipam (pure). */
import { AddressError } from '../base/errors.ts'
import { isV4 } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import { tryParseStoredAddr } from '../base/stored-ip.ts'
import type { Namespace } from '../model/namespace.ts'
import type { Pod } from '../model/pod.ts'
import { refText } from '../model/ref.ts'
import type { Family } from '../model/service.ts'

export const FIXED = 'cni.netplane.io/ipAddrs'
export const POOLS: Readonly<Record<Family, string>> = { IPv4: 'cni.netplane.io/ipv4pools', IPv6: 'cni.netplane.io/ipv6pools' }

/** Names of pools, and whose annotation they are of. */
export interface NamedPools {
  readonly names: readonly string[]
  /** "Namespace/blue" */
  readonly ref: string
  readonly path: string
}

export interface IpAnnotations {
  /** at most one of each family; empty: any will do */
  readonly fixed: readonly Addr[]
  readonly pools: Readonly<Record<Family, NamedPools | undefined>>
}

type Asking = Pick<Pod, 'kind' | 'namespace' | 'name' | 'wishes'> | Pick<Namespace, 'kind' | 'namespace' | 'name' | 'wishes'>

/** The pod's own words go before its namespace's. Throws AddressError that names resource, field and reason. */
export function readIpAnnotations(
  pod: Pick<Pod, 'kind' | 'namespace' | 'name' | 'wishes'>,
  namespace: Namespace | undefined,
): IpAnnotations {
  const poolsOf = (family: Family): NamedPools | undefined =>
    namedPools(pod, family) ?? (namespace === undefined ? undefined : namedPools(namespace, family))
  return { fixed: fixedAddresses(pod), pools: { IPv4: poolsOf('IPv4'), IPv6: poolsOf('IPv6') } }
}

function fixedAddresses(pod: Asking): readonly Addr[] {
  const texts = listAt(pod, FIXED) ?? []
  const addrs = texts.map((text) => tryParseStoredAddr(text) ?? refuse(pod, FIXED, `${JSON.stringify(text)} is no IP address`))
  for (const v4 of [true, false])
    if (addrs.filter((addr) => isV4(addr) === v4).length > 1) refuse(pod, FIXED, 'must be at most one address of each family')
  return addrs
}

function namedPools(object: Asking, family: Family): NamedPools | undefined {
  const key = POOLS[family]
  const names = listAt(object, key)
  return names === undefined ? undefined : { names, ref: refText(object), path: pathOf(key) }
}

/** undefined: there is no such annotation */
function listAt(object: Asking, key: string): readonly string[] | undefined {
  const text = object.wishes?.get(key)
  if (text === undefined) return undefined
  const list = parseJson(text)
  const isList = Array.isArray(list) && list.length > 0 && list.every((one): one is string => typeof one === 'string')
  return isList ? list : refuse(object, key, 'must be a JSON list of texts, like ["…"], with at least one')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuse(object: Asking, key: string, reason: string): never {
  throw new AddressError({ ref: refText(object), path: pathOf(key), reason })
}

function pathOf(key: string): string {
  return `metadata.annotations['${key}']`
}
