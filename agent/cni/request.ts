// SPDX-License-Identifier: Apache-2.0
/** What the shim sends: environment and network configuration of one call → a request. Layer: agent/cni (pure). */
import { tryParseAddr, type Addr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { CniError } from './cni-error.ts'
import { LEAST_MTU } from './networking/mtu.ts'

/** Those before say of addresses in other words. */
export const CNI_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const
export type CniVersion = (typeof CNI_VERSIONS)[number]

export interface NetworkConfig {
  readonly cniVersion: CniVersion
  readonly name: string
  readonly mtu: number | undefined
  /** in which time a pod has to be there */
  readonly timeoutMs: number
  /** another plugin that gives the addresses; undefined: we do */
  readonly ipam: string | undefined
  /** as it was given: what other plugins are to have */
  readonly text: string
}

/** One interface of one sandbox. */
export interface Sandbox {
  readonly containerId: string
  readonly ifname: string
}

export interface PodSandbox extends Sandbox {
  readonly netns: string
  readonly namespace: string
  readonly pod: string
  /** of the pod, where the runtime says it */
  readonly uid?: string
}

/** What the plugins before us in the list have made. */
export interface PreviousResult {
  /** as it was given */
  readonly text: string
  /** of the interface that is asked for */
  readonly addresses: readonly Addr[]
}

/** What other plugins need of the environment. */
export interface Environment {
  readonly args: string
  readonly path: string
}

export type Request = { readonly config: NetworkConfig; readonly environment: Environment } & (
  | { readonly command: 'ADD'; readonly sandbox: PodSandbox; readonly previous: PreviousResult | undefined }
  | { readonly command: 'CHECK'; readonly sandbox: PodSandbox; readonly addresses: readonly Addr[] }
  | { readonly command: 'DEL'; readonly sandbox: Sandbox }
  | { readonly command: 'GC'; readonly valid: readonly Sandbox[] }
  | { readonly command: 'STATUS' }
)
export type RequestOf<C extends Request['command']> = Extract<Request, { readonly command: C }>

const KUBERNETES_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

type Fields = Readonly<Record<string, unknown>>

/** The version to answer with, also to what cannot be read. */
export function versionOf(line: string): CniVersion {
  const config = objectOf(textOf(objectOf(line) ?? {}, 'config'))
  return CNI_VERSIONS.find((version) => version === config?.['cniVersion']) ?? '1.1.0'
}

/** Throws CniError. */
export function parseRequest(line: string): Request {
  const call = objectOf(line)
  if (call === undefined) throw new CniError('decode', 'the call is no JSON object')
  const text = textOf(call, 'config')
  const raw = objectOf(text)
  if (raw === undefined) throw new CniError('decode', 'the network configuration is no JSON object')
  const config = parseConfig(raw, text)
  const environment = { args: textOf(call, 'args'), path: textOf(call, 'path') }
  const command = textOf(call, 'command')
  switch (command) {
    case 'ADD':
      refuseHostPorts(raw)
      return { command, config, environment, sandbox: podSandbox(call), previous: previousResult(raw, textOf(call, 'ifname')) }
    case 'CHECK':
      return { command, config, environment, sandbox: podSandbox(call), addresses: checkedAddresses(raw, textOf(call, 'ifname')) }
    case 'DEL':
      return { command, config, environment, sandbox: sandboxOf(call) }
    case 'GC':
      return { command, config, environment, valid: validOnes(raw) }
    case 'STATUS':
      return { command, config, environment }
    default:
      throw new CniError('environment', `CNI_COMMAND: ${JSON.stringify(command)} is not known here`)
  }
}

function parseConfig(raw: Fields, text: string): NetworkConfig {
  const cniVersion = CNI_VERSIONS.find((version) => version === raw['cniVersion'])
  if (cniVersion === undefined)
    throw new CniError('version', `cniVersion: ${JSON.stringify(raw['cniVersion'])} is not one of ${CNI_VERSIONS.join(', ')}`)
  const name = textOf(raw, 'name')
  if (name === '') throw new CniError('config', 'name: is missing')
  // pods with IPv6 addresses need more: networking knows those
  const mtu = numberOf(raw, 'mtu', [LEAST_MTU.v4, 65_535])
  return {
    cniVersion,
    name,
    mtu,
    timeoutMs: (numberOf(raw, 'timeoutSeconds', [1, MOST_SECONDS]) ?? USUAL_SECONDS) * 1000,
    ipam: ipamType(raw),
    text,
  }
}

const USUAL_SECONDS = 30
/** The shim waits no longer than 90. */
const MOST_SECONDS = 80

function numberOf(raw: Fields, key: string, [least, most]: readonly [number, number]): number | undefined {
  const value = raw[key]
  if (value === undefined || (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most)) return value
  throw new CniError('config', `${key}: must be ${least}..${most}`)
}

function ipamType(raw: Fields): string | undefined {
  const ipam = raw['ipam']
  if (ipam === undefined) return undefined
  const type = isObject(ipam) ? textOf(ipam, 'type') : ''
  if (!/^[\w.-]+$/.test(type) || /^\.+$/.test(type)) throw new CniError('config', 'ipam.type: must be the name of a plugin')
  return type === 'netplane' ? undefined : type
}

/** Runtimes pass hostPorts to Netplane only where no other plugin serves them. */
function refuseHostPorts({ runtimeConfig }: Fields): void {
  const ports = isObject(runtimeConfig) ? runtimeConfig['portMappings'] : undefined
  if (Array.isArray(ports) && ports.length > 0)
    throw new CniError('config', 'runtimeConfig.portMappings: the pod has hostPorts, and there is no portmap in the folder of CNI plugins')
}

function sandboxOf(call: Fields): Sandbox {
  const [containerId, ifname] = [textOf(call, 'containerId'), textOf(call, 'ifname')]
  if (!isContainerId(containerId)) throw new CniError('environment', 'CNI_CONTAINERID: is missing, or is none')
  if (!isIfname(ifname)) throw new CniError('environment', 'CNI_IFNAME: is missing, or cannot be the name of an interface')
  return { containerId, ifname }
}

function isContainerId(text: string): boolean {
  return /^[a-zA-Z0-9][\w.-]{0,254}$/.test(text)
}

function isIfname(text: string): boolean {
  return /^[^\s/:]{1,15}$/.test(text) && text !== '.' && text !== '..'
}

function podSandbox(call: Fields): PodSandbox {
  const netns = textOf(call, 'netns')
  if (!netns.startsWith('/')) throw new CniError('environment', 'CNI_NETNS: must be the path of a network namespace')
  const args = new Map(
    textOf(call, 'args')
      .split(';')
      .map((pair) => [pair.slice(0, Math.max(0, pair.indexOf('='))), pair.slice(pair.indexOf('=') + 1)]),
  )
  const named = (key: string): string => {
    const value = args.get(key) ?? ''
    if (!KUBERNETES_NAME.test(value)) throw new CniError('environment', `CNI_ARGS: ${key} is missing, or is no name`)
    return value
  }
  const uid = args.get('K8S_POD_UID') ?? ''
  return { ...sandboxOf(call), netns, namespace: named('K8S_POD_NAMESPACE'), pod: named('K8S_POD_NAME'), ...(uid === '' ? {} : { uid }) }
}

function previousResult(raw: Fields, ifname: string): PreviousResult | undefined {
  const previous = raw['prevResult']
  if (previous === undefined || previous === null) return undefined
  return { text: JSON.stringify(previous), addresses: addressesOf(previous, ifname) }
}

function checkedAddresses(raw: Fields, ifname: string): readonly Addr[] {
  const previous = previousResult(raw, ifname)
  if (previous === undefined) throw new CniError('config', 'prevResult: is missing')
  return previous.addresses
}

/** Addresses that the result gives to another interface are left out. */
function addressesOf(result: unknown, ifname: string): readonly Addr[] {
  if (!isObject(result)) throw new CniError('config', 'prevResult: is no JSON object')
  const { ips, interfaces } = result
  const links: readonly unknown[] = Array.isArray(interfaces) ? interfaces : []
  const isOther = (ip: unknown): boolean => {
    const at = isObject(ip) ? ip['interface'] : undefined
    const link = typeof at === 'number' ? links[at] : undefined
    return isObject(link) && link['name'] !== ifname
  }
  return (Array.isArray(ips) ? ips : []).flatMap((ip: unknown, at) => {
    const text = isObject(ip) ? textOf(ip, 'address') : ''
    const addr = tryParseAddr(text.replace(/\/\d+$/, ''))
    if (addr === undefined) throw new CniError('config', `prevResult.ips[${at}].address: is no IP address`)
    return isOther(ip) ? [] : [addr]
  })
}

/** libcni fills both: the second is what an earlier text of CNI 1.1 said. */
export const VALID_KEYS = ['cni.dev/valid-attachments', 'cni.dev/attachments'] as const

/** What either list has is valid. Throws when an entry cannot be read: it may be any sandbox's. */
function validOnes(raw: Fields): readonly Sandbox[] {
  const keys = VALID_KEYS.filter((key) => Object.hasOwn(raw, key))
  if (keys.length === 0) throw new CniError('config', `${VALID_KEYS[0]}: is missing`)
  return keys.flatMap((key) => validIn(key, raw[key]))
}

/** A runtime without attachments writes null. */
function validIn(key: string, list: unknown): readonly Sandbox[] {
  if (list === null) return []
  if (!Array.isArray(list)) throw new CniError('config', `${key}: must be a list`)
  return list.map((one: unknown, at) => {
    const [containerId, ifname] = isObject(one) ? [textOf(one, 'containerID'), textOf(one, 'ifname')] : ['', '']
    if (!isContainerId(containerId)) throw new CniError('config', `${key}[${at}].containerID: is missing, or is none`)
    if (!isIfname(ifname)) throw new CniError('config', `${key}[${at}].ifname: is missing, or cannot be the name of an interface`)
    return { containerId, ifname }
  })
}

function objectOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Empty when it is missing or no text. */
function textOf(fields: Fields, key: string): string {
  const value = Object.hasOwn(fields, key) ? fields[key] : undefined
  return typeof value === 'string' ? value : ''
}
