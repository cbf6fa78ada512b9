// SPDX-License-Identifier: Apache-2.0
/** Which variant agents are of, by their DaemonSet and what it goes by. Layer: upgrade (pure). */
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { GROUP } from '#lib/kube/resources.ts'
import { layerFromEnvironment } from '#agent/config/layers.ts'
import { podSpecOf, textsIn, type Agents } from './agents.ts'
import type { UpgradeFacts } from './facts.ts'
import type { Found, Method, OldVariant, Target } from './found.ts'
import { objectsOf, STORED_GROUP } from './objects.ts'

/** What the agents' variables may be called: those of the datastore are also understood with this in front. */
const PREFIXES = ['', 'NETPLANE_', 'FELIX_'] as const
const ETCD = ['ETCD_ENDPOINTS', 'ETCD_DISCOVERY_SRV', 'ETCDENDPOINTS'] as const
const FLANNEL = ['flannel', 'kube-flannel']

/** Of agents before this version. */
export function oldVariantOf(agents: Agents, facts: UpgradeFacts): OldVariant {
  const { environment, containers, namespace } = agents
  const backend = environment.values['NETPLANE_NETWORKING_BACKEND'] ?? ''
  if (containers.some((name) => FLANNEL.includes(name))) return 'canal'
  if (backend === 'none') return 'policy-only'
  if (saysBpf(environment.words) === true) return 'bpf'
  const hasTypha = objectsOf(facts, 'apps', 'Deployment').some(
    ({ metadata }) => metadata.name === 'netplane-typha' && metadata.namespace === namespace,
  )
  if (hasTypha) return 'typha'
  return backend === 'vxlan' ? 'vxlan' : 'netplane'
}

/** "canal-config" of DaemonSet canal or canal-node. */
export function agentsConfigMap({ metadata: { name } }: ApiObject): string {
  return `${name.replace(/-node$/, '')}-config`
}

/** Their resources are in etcd where their variables or volumes say so. */
export function datastoreOf({ environment: { values }, daemonSet }: Agents): Found['datastore'] {
  const said = (names: readonly string[]): string => PREFIXES.flatMap((prefix) => names.map((name) => values[prefix + name] ?? '')).join('')
  const type = said(['DATASTORE_TYPE', 'DATASTORETYPE'])
  if (type !== '') return type.includes('etcd') ? 'etcd' : 'kubernetes'
  const hasCertificates = objectsIn(podSpecOf(daemonSet)['volumes']).some(({ name }) => name === 'etcd-certs')
  return hasCertificates || said(ETCD) !== '' ? 'etcd' : 'kubernetes'
}

/** By which of our manifests the agents go on. */
export function targetOf(agents: Agents, method: Method, facts: UpgradeFacts): Target {
  if (agents.isOurs) return ownTarget(agents)
  if (method !== 'manifest') return operatorTarget(facts)
  const variant = oldVariantOf(agents, facts)
  if (variant === 'canal') return 'netplane-local'
  return variant === 'policy-only' ? 'netplane-policy-only' : 'netplane'
}

function ownTarget({ container }: Agents): Target {
  const args = textsIn(container['args'])
  if (args.includes('--cni-chained')) return 'netplane-chained'
  if (args.includes('--cni-local')) return 'netplane-local'
  return args.some((arg) => arg.startsWith('--cni-conf-dir=')) ? 'netplane' : 'netplane-policy-only'
}

/** An older Installation names the plugin of the provider where the pods' network is not ours. */
function operatorTarget(facts: UpgradeFacts): Target {
  const type = textOf(fieldsOf(fieldsOf(installationIn(facts)?.['spec'])['cni'])['type'])
  return type === '' || type === 'Netplane' ? 'netplane' : 'netplane-policy-only'
}

export function installationIn(facts: UpgradeFacts): ApiObject | undefined {
  return objectsOf(facts, `operator.${GROUP}`, 'Installation').find(({ metadata }) => metadata.name === 'default')
}

/** By their environment, which goes first, else by FelixConfiguration default, else as the version does. */
export function isBpf({ environment, isOurs }: Agents, facts: UpgradeFacts): boolean {
  const group = isOurs ? GROUP : STORED_GROUP
  const configuration = objectsOf(facts, group, 'FelixConfiguration').find(({ metadata }) => metadata.name === 'default')
  const written = fieldsOf(configuration?.['spec'])['bpfEnabled']
  return saysBpf(environment.values) ?? (typeof written === 'boolean' ? written : isOurs)
}

function saysBpf(variables: Readonly<Record<string, string>>): boolean | undefined {
  const said = layerFromEnvironment(variables).spec['bpfEnabled']
  return typeof said === 'boolean' ? said : undefined
}
