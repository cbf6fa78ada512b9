// SPDX-License-Identifier: Apache-2.0
/** Flannel of an installation that has it beside the agent, in one DaemonSet, as a DaemonSet of its own.
 * Layer: upgrade (pure). */
import { fieldsOf, isObject, objectsIn } from '#lib/base/object.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { account } from '#lib/render/account.ts'

/** All that is made. No manifest of flannel or of ours has an object of the name. */
export const FLANNEL = 'netplane-flannel'

/** What the container was called: before the API server had its leases, and since. */
const CONTAINERS: ReadonlySet<unknown> = new Set(['flannel', 'kube-flannel'])

/** Of the pod, where the old one says them. */
const POD_FIELDS = ['hostNetwork', 'priorityClassName', 'tolerations', 'nodeSelector', 'affinity', 'imagePullSecrets', 'dnsPolicy'] as const

/** Its subnet file is where flannel's plugin looks for it. */
const SUBNET_FOLDER = '/run/flannel'
const SUBNET_VOLUME = 'flannel-run'
const IS_SUBNET_FOLDER = /^(\/var)?\/run\/flannel\/?$/

/** Probes ask at a port of the node. While the old one has it, a second flannel would end itself. */
const WITHOUT = ['ports', 'livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'] as const
const HEALTH_PORT = /^--?healthz-(port|ip)(=|$)/

/** Undefined: there is no flannel in it. */
export function flannelContainer(daemonSet: ApiObject): Readonly<Record<string, unknown>> | undefined {
  return objectsIn(podSpecOf(daemonSet)['containers']).find(({ name }) => CONTAINERS.has(name))
}

/** Account, rights, configuration, daemon set; none where no flannel is in `daemonSet`. What it is told is the same.
 * Only its account and its configuration are its own, so that those of the old installation can go. */
export function splitFlannel(daemonSet: ApiObject, configMap: ApiObject): readonly ApiObject[] {
  const container = flannelContainer(daemonSet)
  const { namespace = '' } = daemonSet.metadata
  if (container === undefined) return []
  const labels = { 'app.kubernetes.io/name': FLANNEL }
  const metadata = { name: FLANNEL, namespace, labels }
  const renamed = (value: unknown): unknown => withConfigMap(value, configMap.metadata.name)
  const spec = podSpecOf(daemonSet)
  const template = {
    ...Object.fromEntries(POD_FIELDS.flatMap((field) => (spec[field] === undefined ? [] : [[field, spec[field]]]))),
    serviceAccountName: FLANNEL,
    // what it has made in the kernel goes on meanwhile
    terminationGracePeriodSeconds: 0,
    containers: [renamed(withSubnetFolder(withoutHealth(container)))],
    volumes: renamed(volumesOf(container, spec)),
  }
  return [
    ...account({ name: FLANNEL, namespace, rules: RULES, ownRules: [] }).map((object) => withLabels(object, labels)),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: configMap['data'] ?? {} },
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata,
      spec: {
        selector: { matchLabels: labels },
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
        template: { metadata: { labels }, spec: template },
      },
    },
  ].map(asApiObject)
}

/** As flannel's own manifest has them: which node its pod is on, what leases the nodes have, and its own. */
const RULES = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
]

type Fields = Readonly<Record<string, unknown>>

function podSpecOf(daemonSet: ApiObject): Fields {
  return fieldsOf(fieldsOf(fieldsOf(daemonSet['spec'])['template'])['spec'])
}

function withoutHealth(container: Fields): Fields {
  const rest = Object.entries(container).filter(([field]) => !(WITHOUT as readonly string[]).includes(field))
  return Object.fromEntries(
    rest.map(([field, value]) => [field, field === 'args' || field === 'command' ? withoutHealthPort(value) : value]),
  )
}

/** Both "--healthz-port=8081" and "--healthz-port 8081". */
function withoutHealthPort(words: unknown): unknown {
  if (!Array.isArray(words)) return words
  const isHealth = (word: unknown): boolean => typeof word === 'string' && HEALTH_PORT.test(word)
  const isValue = (at: number): boolean => isHealth(words[at - 1]) && !String(words[at - 1]).includes('=')
  return (words as readonly unknown[]).filter((word, at) => !isHealth(word) && !isValue(at))
}

function withSubnetFolder(container: Fields): Fields {
  const mounts = objectsIn(container['volumeMounts'])
  if (hasSubnetFolder(mounts)) return container
  return { ...container, volumeMounts: [...mounts, { name: SUBNET_VOLUME, mountPath: SUBNET_FOLDER }] }
}

function hasSubnetFolder(mounts: readonly Fields[]): boolean {
  return mounts.some(({ mountPath }) => typeof mountPath === 'string' && IS_SUBNET_FOLDER.test(mountPath))
}

/** Those that the container has, and the folder of the subnet file. */
function volumesOf(container: Fields, spec: Fields): readonly Fields[] {
  const mounts = objectsIn(container['volumeMounts'])
  const names = new Set(mounts.map(({ name }) => name))
  const folder = { name: SUBNET_VOLUME, hostPath: { path: SUBNET_FOLDER, type: 'DirectoryOrCreate' } }
  return [...objectsIn(spec['volumes']).filter(({ name }) => names.has(name)), ...(hasSubnetFolder(mounts) ? [] : [folder])]
}

/** What names the old config map, in variables and volumes, names the new one. */
function withConfigMap(value: unknown, before: string): unknown {
  if (Array.isArray(value)) return value.map((part) => withConfigMap(part, before))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, part]) => {
      const isReference = ['configMap', 'configMapRef', 'configMapKeyRef'].includes(field) && fieldsOf(part)['name'] === before
      return [field, isReference ? { ...fieldsOf(part), name: FLANNEL } : withConfigMap(part, before)]
    }),
  )
}

function withLabels(object: object, labels: Readonly<Record<string, string>>): object {
  return { ...object, metadata: { ...fieldsOf(fieldsOf(object)['metadata']), labels } }
}
