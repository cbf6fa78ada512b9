// SPDX-License-Identifier: Apache-2.0
/** Installations of older versions as they are stored: what all of a variant have, and what a fixture adds.
 * Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { isObject, objectsIn, textOf } from '#lib/base/object.ts'
import type { InstallationInput } from '#upgrade/stored/installation.ts'
import type { Manifest } from '../../support/build.ts'
import { affinity, block, node, NOW, pod } from './addresses.ts'
import { raw, storedBy, VERSIONS, type Version } from './stored.ts'

/** Those that keep their objects in the API server. */
export const VARIANTS = ['netplane', 'vxlan', 'chained', 'policy-only', 'operator'] as const
export type Variant = (typeof VARIANTS)[number]

const FIXTURES = join(import.meta.dirname, 'fixtures')
/** Whose pods have addresses of our blocks. */
const OWN_ADDRESSES: ReadonlySet<Variant> = new Set(['netplane', 'vxlan', 'operator'])

/** As the manifests of these versions have it. */
const ENVIRONMENT = { FELIX_DEFAULTENDPOINTTOHOSTACTION: 'ACCEPT', FELIX_IPV6SUPPORT: 'false', FELIX_HEALTHENABLED: 'true' }

export function common(version: Version, variant: Variant): InstallationInput {
  const own = OWN_ADDRESSES.has(variant)
  return {
    objects: [...configuration(version, variant), ...tiers(version), ...policies(version), ...(own ? addresses(version, variant) : [])],
    pods: own
      ? [pod('shop/web', 'a', '10.244.0.5'), pod('shop/db', 'b', '10.244.0.70')]
      : [pod('shop/web', 'a', '10.244.0.5'), pod('shop/db', 'b', '10.244.1.5')],
    nodes: [node('a', '10.244.0.0/24'), node('b', '10.244.1.0/24')],
    environment: ENVIRONMENT,
    now: NOW,
  }
}

function configuration(version: Version, variant: Variant): readonly Manifest[] {
  const stored = storedBy(version)
  const clusterType = {
    netplane: 'k8s,bgp,kdd',
    vxlan: 'k8s,kdd',
    chained: 'k8s,canal',
    'policy-only': 'k8s',
    operator: 'k8s,operator,kdd',
  }[variant]
  const information = { clusterGUID: '3f1c', clusterType, netplaneVersion: `v${version}.0`, datastoreReady: true }
  const interval = { reconcilerPeriod: '5m0s' }
  const controllers = {
    node: { ...interval, syncLabels: 'Enabled', hostEndpoint: { autoCreate: 'Disabled' } },
    ...{ policy: interval, workloadEndpoint: interval, serviceAccount: interval, namespace: interval },
  }
  return [
    stored('ClusterInformation', 'default', { spec: version === '3.15' ? information : { ...information, variant: 'Netplane' } }),
    stored('FelixConfiguration', 'default', { spec: { logSeverityScreen: 'Info', reportingInterval: '0s' } }),
    stored('ControllersConfiguration', 'default', { spec: { healthChecks: 'Enabled', logSeverityScreen: 'Info', controllers } }),
  ]
}

/** Objects since 3.29. */
function tiers(version: Version): readonly Manifest[] {
  const stored = storedBy(version)
  const all = [
    stored('Tier', 'default', { spec: { order: 1_000_000, defaultAction: 'Deny' } }),
    stored('Tier', 'adminnetworkpolicy', { spec: { order: 1000, defaultAction: 'Pass' } }),
    stored('Tier', 'baselineadminnetworkpolicy', { spec: { order: 10_000_000, defaultAction: 'Pass' } }),
  ]
  return ['3.15', '3.20', '3.27'].includes(version) ? [] : all.slice(0, version === '3.29.2' ? 2 : 3)
}

function policies(version: Version): readonly Manifest[] {
  const stored = storedBy(version)
  const labels = ['3.15', '3.20', '3.27'].includes(version) ? {} : { 'netplane.io/tier': 'default' }
  const web = {
    selector: "app == 'web'",
    types: ['Ingress'],
    ingress: [{ action: 'Allow', protocol: 'TCP', destination: { ports: [80] } }],
  }
  return [
    stored('NetworkPolicy', 'shop/web', { labels, spec: { order: 10, ...web } }),
    stored('GlobalNetworkPolicy', 'deny-all', {
      labels,
      spec: { order: 1000, selector: "netplane.io/namespace == 'shop'", types: ['Ingress', 'Egress'] },
    }),
  ]
}

function addresses(version: Version, variant: Variant): readonly Manifest[] {
  const since = version === '3.15' || version === '3.20' ? {} : { allowedUses: ['Workload', 'Tunnel'] }
  const vxlanMode = variant === 'netplane' ? 'CrossSubnet' : 'Always'
  const spec = { cidr: '10.244.0.0/16', blockSize: 26, ipipMode: 'Never', vxlanMode, natOutgoing: true, nodeSelector: 'all()', ...since }
  const tunnel = (on: string) => (variant === 'netplane' ? {} : { 0: `tunnel of ${on}` })
  return [
    storedBy(version)('IPPool', 'default-ipv4-ippool', { spec }),
    block('10.244.0.0/26', { node: 'a', given: { ...tunnel('a'), 5: 'shop/web on a' } }),
    block('10.244.0.64/26', { node: 'b', given: { ...tunnel('b'), 6: 'shop/db on b' } }),
    affinity('a', '10.244.0.0/26'),
    affinity('b', '10.244.0.64/26'),
    raw('IPAMHandle', 'k8s-pod-network.c-shop-web', { spec: { handleID: 'k8s-pod-network.c-shop-web', block: { '10.244.0.0/26': 1 } } }),
    raw('IPAMConfig', 'default', { spec: { strictAffinity: false, autoAllocateBlocks: true } }),
  ]
}

/** "3.15-netplane" */
export function fixtureNames(): readonly string[] {
  return readdirSync(FIXTURES).sort()
}

export function expectedFile(name: string): string {
  return join(FIXTURES, name, 'expected.txt')
}

/** What all of its version and variant have, with its own objects in place of those of the same kind and name. */
export function fixture(name: string): InstallationInput {
  const [version, variant] = [VERSIONS, VARIANTS].map((all) => all.find((one) => name.startsWith(`${one}-`) || name.endsWith(`-${one}`)))
  const base = common(versionOf(version), variantOf(name, variant))
  const own = load(readFileSync(join(FIXTURES, name, 'own.yaml'), 'utf8'))
  if (!isObject(own)) throw new Error(`${name}: own.yaml is no object`)
  const objects = objectsIn(own['objects']).map((one) => objectWith(versionOf(version), one))
  const pods = Object.entries(isObject(own['pods']) ? own['pods'] : {}).map(([pod1, where]) => podWith(pod1, textOf(where)))
  const replaced = new Set([...objects, ...pods].map(keyOf))
  const kept = (all: readonly unknown[]): readonly unknown[] => all.filter((one) => !replaced.has(keyOf(one)))
  return { ...base, objects: [...kept(base.objects), ...objects], pods: [...kept(base.pods), ...pods] }
}

function versionOf(version: string | undefined): Version {
  const found = VERSIONS.find((one) => one === version)
  if (found === undefined) throw new Error(`${String(version)} is no version`)
  return found
}

function variantOf(name: string, found: string | undefined): Variant {
  const variant = VARIANTS.find((one) => one === found)
  if (variant === undefined) throw new Error(`${name} is of no variant`)
  return variant
}

function keyOf(object: unknown): string {
  const { kind, metadata } = isObject(object) ? object : {}
  const { namespace, name } = isObject(metadata) ? metadata : {}
  return JSON.stringify([kind, namespace, name])
}

/** `straight: true`: written without a client of the product. A block says what is given, number by number. */
function objectWith(version: Version, of: Manifest): Manifest {
  const [kind, name] = [textOf(of['kind']), textOf(of['name'])]
  if (kind === 'IPAMBlock' && isObject(of['given'])) {
    const given = Object.fromEntries(Object.entries(of['given']).map(([at, text]) => [Number(at), textOf(text)]))
    const free = Array.isArray(of['free']) ? { free: of['free'].map(Number) } : {}
    return block(name, { node: typeof of['node'] === 'string' ? of['node'] : undefined, given, ...free })
  }
  const said = {
    spec: fields(of['spec']),
    labels: texts(of['labels']),
    annotations: texts(of['annotations']),
    metadata: fields(of['metadata']),
  }
  return of['straight'] === true ? raw(kind, name, said) : storedBy(version)(kind, name, said)
}

function fields(value: unknown): Manifest {
  return isObject(value) ? value : {}
}

function texts(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields(value)).map(([key, text]) => [key, textOf(text)]))
}

/** "b: 10.244.0.9, fd00::9" */
function podWith(name: string, where: string): Manifest {
  const [on = '', addresses = ''] = where.split(': ')
  return pod(name, on, ...addresses.split(', ').filter((address) => address !== ''))
}
