// SPDX-License-Identifier: Apache-2.0
/** Where the API server is without any service, a row for each platform. Layer: cli (pure). */
import { load } from 'js-yaml'
import { tryParseAddr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { originOf, type ApiServer } from '#lib/api/connection/server.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { isControlPlane, nodeAddresses } from '#lib/preflight/endpoint-owner.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import type { Provider } from '#lib/render/providers.ts'
import { BALANCED, isSame, listIn } from './address.ts'
import { InstallError } from './errors.ts'

/** What a row decides on. */
export interface Facts {
  readonly nodes: readonly ApiObject[]
  /** what the row reads, in its order; undefined: it is not there */
  readonly objects: readonly (ApiObject | undefined)[]
  /** of the kubeconfig in use */
  readonly server: Pick<ApiServer, 'protocol' | 'host' | 'port' | 'prefix'>
  /** where the operator reads the config map */
  readonly namespace: string
}

export interface Candidate {
  /** an address is without brackets */
  readonly host: string
  readonly port: number
  /** what says so: "controlPlaneEndpoint of config map kube-system/kubeadm-config" */
  readonly by: string
  readonly warnings: readonly string[]
}

export interface Row {
  /** of the docs: what it is, and where host and port come from */
  readonly platform: string
  readonly host: string
  readonly port: string
  readonly reads: readonly Named[]
  /** the best one first; throws InstallError that says what to do when there is none */
  readonly find: (facts: Facts) => readonly Candidate[]
  /** each node has one of its own by this name */
  readonly perNode?: boolean
}

const map = (namespace: string, name: string): Named => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name })
const KUBEADM = map('kube-system', 'kubeadm-config')
const KOPS = map('kube-system', 'kops-controller')
const CLUSTER_INFO = map('kube-public', 'cluster-info')
const INFRASTRUCTURE: Named = { apiVersion: 'config.openshift.io/v1', kind: 'Infrastructure', name: 'cluster' }
/** What API servers say of themselves. */
const API_SERVERS: Named = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', namespace: 'default', name: 'kubernetes' }
const USUAL_PORT = 6443
const STATIC = 'it must be static: agents lose the API server when it changes'

const GENERIC: Row = {
  platform: 'kubeadm and the like',
  host: '`controlPlaneEndpoint` in `kube-system/kubeadm-config`; without it the only control-plane node, whose address must be static',
  port: 'its port',
  reads: [KUBEADM, API_SERVERS],
  find: generic,
}

const MANAGED: Row = {
  platform: 'managed',
  host: 'server of the kubeconfig, as in `kubectl cluster-info`; where it is a tunnel, that of `kube-public/cluster-info`',
  port: 'its port: 443',
  reads: [CLUSTER_INFO],
  find: managed,
}

export const ROWS: Readonly<Record<Provider, Row>> = {
  Generic: GENERIC,
  KOPS: {
    platform: 'kOps',
    host: '`api.internal.CLUSTER`, with the name in `kube-system/kops-controller`',
    port: '443',
    reads: [KOPS],
    find: kops,
  },
  OpenShift: {
    platform: 'OpenShift',
    host: '`apiServerURL` in the status of Infrastructure `cluster` (`api.CLUSTER.DOMAIN`), else its `apiServerInternalURI`',
    port: 'its port: 6443',
    reads: [INFRASTRUCTURE],
    find: openShift,
  },
  AKS: { ...MANAGED, platform: 'AKS' },
  EKS: { ...MANAGED, platform: 'EKS' },
  MKE: {
    platform: 'MKE',
    host: '`proxy.local`, a proxy on each node',
    port: '6444',
    reads: [],
    find: () => [{ host: 'proxy.local', port: 6444, by: 'the proxy that each node of MKE has', warnings: [] }],
    perNode: true,
  },
  RKE2: { ...GENERIC, platform: 'RKE2 (untried)' },
}

/** As lines of a page. */
export function rowsTable(): readonly string[] {
  const rows = Object.entries(ROWS).map(([provider, { platform, host, port }]) => `| \`${provider}\` | ${platform} | ${host} | ${port} |`)
  return ['| `--platform` | platform | host | port |', '| --- | --- | --- | --- |', ...rows]
}

function generic({ nodes, objects: [kubeadm, servers], namespace }: Facts): readonly Candidate[] {
  const port = portIn(servers) ?? USUAL_PORT
  const configured = textIn(yamlIn(kubeadm, 'ClusterConfiguration'), 'controlPlaneEndpoint')
  if (configured !== undefined) {
    const by = 'controlPlaneEndpoint of config map kube-system/kubeadm-config'
    const place = placeIn(configured, port)
    if (place === undefined) throw new InstallError(`${by}: ${JSON.stringify(configured)} is neither a host nor a host with a port`)
    const isOfNode = nodes.some((node) => nodeAddresses(node).some((address) => isSame(address, place.host)))
    return [{ ...place, by, warnings: isOfNode ? [`${place.host} is the address of a node: ${STATIC}`] : [] }]
  }
  const planes = nodes.filter(isControlPlane)
  const [plane, ...more] = planes
  const missing = `there is no controlPlaneEndpoint in config map kube-system/kubeadm-config, and`
  if (plane === undefined) throw new InstallError(`${missing} no node with the label of a control plane: ${byHand(namespace)}`)
  if (more.length > 0)
    throw new InstallError(`${missing} ${planes.length} nodes have API servers: ${BALANCED}, as controlPlaneEndpoint or by hand`)
  const [first] = nodeAddresses(plane)
  const told = addressesIn(servers)
  // the certificate has the address that the server tells of, where a node has several
  const host = nodeAddresses(plane).find((address) => told.some((one) => isSame(one, address))) ?? first
  if (host === undefined)
    throw new InstallError(`node ${plane.metadata.name}, which has the API server, tells no address: ${byHand(namespace)}`)
  const by = `address of node ${plane.metadata.name}, the only one with an API server`
  return [{ host, port, by, warnings: [`${host} is the address of a node: ${STATIC}; a DNS name of it is better`] }]
}

function byHand(namespace: string): string {
  const values = ['CLUSTER_SERVICE_HOST=HOST', 'CLUSTER_SERVICE_PORT=PORT'].map((value) => `--from-literal=${value}`)
  return `make the config map by hand: kubectl -n ${namespace} create configmap ${ENDPOINT_MAP} ${values.join(' ')}`
}

function kops({ objects: [controller], namespace }: Facts): readonly Candidate[] {
  const config = yamlIn(controller, 'config.yaml')
  // older kOps had the name only in the place of its state: s3://BUCKET/CLUSTER
  const name = textIn(config, 'clusterName') ?? textIn(config, 'configBase')?.replace(/\/+$/, '').split('/').at(-1)
  const by = 'cluster name in config map kube-system/kops-controller'
  if (name === undefined || name === '') throw new InstallError(`there is no ${by}: ${byHand(namespace)}`)
  const warnings = name.endsWith('.k8s.local')
    ? [`only /etc/hosts of the nodes knows names of a gossip cluster, and a pod has a copy of it from when it was started`]
    : []
  return [{ host: `api.internal.${name}`, port: 443, by, warnings }]
}

/** The name that the installer gives the API; where pods cannot verify it, the one that nodes use. */
function openShift({ objects: [infrastructure], namespace }: Facts): readonly Candidate[] {
  const found = ['apiServerURL', 'apiServerInternalURI'].flatMap((field): readonly Candidate[] => {
    const place = placeOfUrl(textIn(infrastructure?.['status'], field))
    return place === undefined ? [] : [{ ...place, by: `status.${field} of Infrastructure cluster`, warnings: [] }]
  })
  if (found.length === 0)
    throw new InstallError(`Infrastructure cluster tells no URL of the API server in its status: ${byHand(namespace)}`)
  return found
}

function managed({ server, objects: [clusterInfo], namespace }: Facts): readonly Candidate[] {
  const { protocol, host, port, prefix } = server
  const own = { host, port, by: 'server of the kubeconfig in use', warnings: [] }
  const config = yamlIn(clusterInfo, 'kubeconfig')
  const [first] = listIn(config, 'clusters')
  const place = placeOfUrl(textIn(isObject(first) ? first['cluster'] : undefined, 'server'))
  const published = place === undefined ? [] : [{ ...place, by: 'server in config map kube-public/cluster-info', warnings: [] }]
  // what has a path, or no TLS, is a proxy before the API server
  const found = [...(protocol === 'https:' && prefix === '' ? [own] : []), ...published]
  if (found.length === 0)
    throw new InstallError(`the server of the kubeconfig in use is a proxy (${originOf(server)}${prefix}): ${byHand(namespace)}`)
  return found
}

type Place = Pick<Candidate, 'host' | 'port'>

/** "host", "host:6443", "2001:db8::1", "[2001:db8::1]:6443" */
function placeIn(text: string, usualPort: number): Place | undefined {
  if (tryParseAddr(text) !== undefined) return { host: text, port: usualPort }
  const { groups } = /^(\[(?<v6>[^\]]+)\]|(?<name>[^:/[\]]+))(:(?<port>\d+))?$/.exec(text) ?? {}
  const host = groups?.['v6'] ?? groups?.['name']
  return host === undefined ? undefined : { host, port: Number(groups?.['port'] ?? usualPort) }
}

function placeOfUrl(text: string | undefined): Place | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined
  const { protocol, hostname, port } = new URL(text)
  if (protocol !== 'https:' || hostname === '') return undefined
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 443 : Number(port) }
}

function portIn(slice: ApiObject | undefined): number | undefined {
  const [port, ...more] = listIn(slice, 'ports')
  const number: unknown = more.length === 0 && isObject(port) ? port['port'] : undefined
  return typeof number === 'number' ? number : undefined
}

function addressesIn(slice: ApiObject | undefined): readonly string[] {
  const addresses = listIn(slice, 'endpoints').flatMap((one) => listIn(one, 'addresses'))
  return addresses.filter((address) => typeof address === 'string')
}

/** A document that is in a config map. */
function yamlIn(object: ApiObject | undefined, key: string): unknown {
  const text = textIn(object?.['data'], key)
  if (object === undefined || text === undefined) return undefined
  try {
    return load(text)
  } catch (thrown) {
    throw new InstallError(`config map ${object.metadata.namespace ?? ''}/${object.metadata.name}: ${key} is no YAML`, thrown)
  }
}

function textIn(value: unknown, name: string): string | undefined {
  const text: unknown = isObject(value) ? value[name] : undefined
  return typeof text === 'string' && text !== '' ? text : undefined
}
