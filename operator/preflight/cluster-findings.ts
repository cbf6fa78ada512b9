// SPDX-License-Identifier: Apache-2.0
/** What the API server's objects tell that no node can: what is not supported, and is there. Layer: operator (pure). */
import { load } from 'js-yaml'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { clusterTypeOf } from '#lib/kube/objects/cluster-information.ts'
import { finding, type Finding, type FindingCode } from '#lib/preflight/findings.ts'
import { isOldServer, OLDEST_SERVER } from '#lib/preflight/oldest-server.ts'
import { hasSideCar } from '#lib/preflight/side-car.ts'
import type { Computed } from '#lib/render/computed.ts'
import { daemonSetState } from '../switch/proxy-found.ts'
import { namesText } from '#lib/control/names-text.ts'
import { sharedAddresses } from './shared-addresses.ts'

/** With the type of a platform that is refused as its value. */
export const ALLOW_PLATFORM = 'operator.netplane.io/allow-platform'

export interface ClusterObjects {
  /** "v1.34.1" */
  readonly serverVersion: string
  readonly installation: ApiObject
  readonly computed: Computed
  /** by which agents are to ask the API server */
  readonly hasEndpoint: boolean
  /** "netplane-operator/cluster-services-endpoint" */
  readonly endpointMap: string
  /** kube-proxy's DaemonSet; undefined: there is none */
  readonly proxy: ApiObject | undefined
  /** and its settings */
  readonly proxyConfig: ApiObject | undefined
  readonly nodes: readonly ApiObject[]
  readonly services: readonly ApiObject[]
  /** of Kubernetes */
  readonly networkPolicies: readonly ApiObject[]
  /** of ours, of all kinds */
  readonly policies: readonly ApiObject[]
  /** also those that are to be made */
  readonly pools: readonly ApiObject[]
  /** those of them that a new installation is to make */
  readonly newPools: readonly ApiObject[]
  readonly pods: readonly ApiObject[]
  readonly felixConfigurations: readonly ApiObject[]
  /** of kinds that a firewall for the web or logs of requests are asked for by */
  readonly applicationObjects: readonly ApiObject[]
}

export function clusterFindings(all: ClusterObjects): readonly Finding[] {
  const shared = all.computed.cni === 'Netplane' ? sharedAddresses(all) : []
  return [...ofServer(all), ...ofPlatform(all), ...ofProxy(all), ...ofNodes(all), ...ofObjects(all), ...ofPods(all), ...shared]
}

function ofServer({ serverVersion, hasEndpoint, proxy, computed, endpointMap }: ClusterObjects): readonly Finding[] {
  const mayServe = proxy !== undefined || computed.platform.hidesKubeProxy
  return [
    ...(isOldServer(serverVersion) ? [finding('server-too-old', serverVersion, `Kubernetes ${OLDEST_SERVER}`)] : []),
    ...(hasEndpoint ? [] : [finding(mayServe ? 'endpoint-by-service' : 'endpoint-missing', endpointMap)]),
  ]
}

const REFUSED = ['gke', 'tkg', 'rke']

function ofPlatform({ serverVersion, nodes, installation, computed }: ClusterObjects): readonly Finding[] {
  const refused = REFUSED.find((type) => nodes.some((node) => typesOf(serverVersion, node).includes(type)))
  const allowed = installation.metadata.annotations?.[ALLOW_PLATFORM]
  return [
    ...(refused === undefined ? [] : [finding(allowed === refused ? 'platform-allowed' : 'platform-refused', refused, ALLOW_PLATFORM)]),
    ...(computed.provider === 'RKE2' ? [finding('platform-untried', computed.provider)] : []),
  ]
}

function typesOf(version: string, { metadata }: ApiObject): readonly string[] {
  const isRke = Object.keys(metadata.annotations ?? {}).includes('rke.cattle.io/internal-ip')
  return [...clusterTypeOf(version, new Map(Object.entries(metadata.labels ?? {}))).split(','), ...(isRke ? ['rke'] : [])]
}

function ofProxy({ proxy, proxyConfig, computed, nodes }: ClusterObjects): readonly Finding[] {
  if (proxy === undefined) return []
  const isIpvs = Object.values(fieldsOf(proxyConfig?.['data'])).some((text) => modeIn(textOf(text)) === 'ipvs')
  const asked = JSON.stringify(proxy['spec'] ?? {})
  // in Standard mode it has to run; one that is stopped, by us or by hand, is on no node
  const isBesideUs = computed.linuxDataplane === 'BPF' && !computed.managesKubeProxy && daemonSetState(proxy, nodes) === 'running'
  return [
    ...(isIpvs || /--proxy-mode[=",\s]+ipvs/.test(asked) ? [finding('proxy-ipvs', nameOf(proxyConfig ?? proxy))] : []),
    ...(isBesideUs ? [proxyRuns(proxy.metadata)] : []),
  ]
}

/** `place`: of its DaemonSet. */
export function proxyRuns({ namespace = '', name }: { readonly namespace?: string | undefined; readonly name: string }): Finding {
  return finding('proxy-runs', `DaemonSet ${namespace}/${name}`)
}

/** Of kube-proxy's settings, in YAML or JSON. It takes some that a strict reader does not, as a key that stands twice:
 * there any line with a mode counts. */
function modeIn(settings: string): unknown {
  try {
    return fieldsOf(load(settings))['mode']
  } catch {
    return /^\s*mode:\s*["']?ipvs\b/m.test(settings) ? 'ipvs' : undefined
  }
}

function ofNodes({ nodes, computed }: ClusterObjects): readonly Finding[] {
  const selector = Object.entries(computed.nodePods.nodeSelector ?? {})
  const isWindows = ({ metadata }: ApiObject): boolean => metadata.labels?.['kubernetes.io/os'] === 'windows'
  return [
    ...named('windows-nodes', nodes.filter(isWindows)),
    ...named(
      'mixed-nodes',
      nodes.filter((node) => !isWindows(node) && selector.some(([key, value]) => node.metadata.labels?.[key] !== value)),
    ),
  ]
}

function ofObjects({
  services,
  networkPolicies,
  policies,
  pools,
  felixConfigurations,
  applicationObjects,
}: ClusterObjects): readonly Finding[] {
  const portsOf = (service: ApiObject): readonly unknown[] => objectsIn(fieldsOf(service['spec'])['ports'])
  const isSctp = (port: unknown): boolean => /^(sctp|132)$/i.test(String(fieldsOf(port)['protocol']))
  const floating = felixConfigurations.filter(({ spec }) => fieldsOf(spec)['floatingIPs'] === 'Enabled')
  const synced = felixConfigurations.filter(({ spec }) => textOf(fieldsOf(spec)['policySyncPathPrefix']) !== '')
  return [
    ...named(
      'sctp-services',
      services.filter((service) => portsOf(service).some(isSctp)),
    ),
    ...named('sctp-policies', [
      ...networkPolicies.filter((policy) => rulesOf(policy).some((rule) => objectsIn(rule['ports']).some(isSctp))),
      ...policies.filter((policy) => rulesOf(policy).some(isSctp)),
    ]),
    ...named(
      'log-rules',
      policies.filter((policy) => rulesOf(policy).some((rule) => rule['action'] === 'Log')),
    ),
    ...named(
      'ipip-pools',
      pools.filter(({ spec }) => !['undefined', 'Never'].includes(String(fieldsOf(spec)['ipipMode']))),
    ),
    ...named('floating-ips', floating),
    ...(synced.length === 0 ? [] : [finding('application-layer', 'policy of the application layer', namesText(synced.map(nameOf)))]),
    ...(applicationObjects.length === 0
      ? []
      : [finding('application-layer', 'a firewall or log of the application layer', namesText(applicationObjects.map(nameOf)))]),
  ]
}

function ofPods({ pods }: ClusterObjects): readonly Finding[] {
  const sidecars = pods.filter(hasSideCar)
  return [
    ...named('floating-ips', pods.filter(isFloating)),
    ...(sidecars.length === 0
      ? []
      : [finding('application-layer', 'a side-car of application layer policy', namesText(sidecars.map(nameOf)))]),
  ]
}

/** It asks for an address beside its own. */
export function isFloating({ metadata }: ApiObject): boolean {
  return Object.keys(metadata.annotations ?? {}).some((key) => /^cni\.[a-z.]+\/floatingIPs$/.test(key))
}

/** Of policies of every kind: ingress, then egress. */
function rulesOf({ spec }: ApiObject): readonly Readonly<Record<string, unknown>>[] {
  return ['ingress', 'egress'].flatMap((side) => objectsIn(fieldsOf(spec)[side]))
}

function named(code: FindingCode, objects: readonly ApiObject[]): readonly Finding[] {
  return objects.length === 0 ? [] : [finding(code, namesText(objects.map(nameOf)))]
}

/** "default/web", "node-a" */
function nameOf({ metadata: { namespace, name } }: ApiObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}
