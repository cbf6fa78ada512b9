// SPDX-License-Identifier: Apache-2.0
/** Clusters with an installation of an older version, as far as it is recognised by its objects, and as an API server
 * takes them. Layer: test. */
import { fieldsOf } from '#lib/base/object.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { UpgradeFacts } from '#upgrade/found/facts.ts'
import type { Variant } from '../stored/installation.ts'
import { VERSIONS, type Version } from '../stored/stored.ts'

/** What a matrix of versions has of each. */
export const FORMS = ['netplane', 'vxlan', 'canal', 'policy-only', 'operator', 'chart'] as const
export type MatrixForm = (typeof FORMS)[number]
/** And those that need no version of their own. */
export type Form = MatrixForm | 'typha' | 'bpf' | 'etcd' | 'canal-etcd'

/** The matrix. */
export const EVERY = VERSIONS.flatMap((version) => FORMS.map((form) => [version, form] as const))

/** What the forms store. */
export const STORED_BY: Readonly<Record<MatrixForm, Variant>> = {
  ...{ netplane: 'netplane', vxlan: 'vxlan', canal: 'chained', 'policy-only': 'policy-only', operator: 'operator', chart: 'operator' },
}

type Fields = Readonly<Record<string, unknown>>

/** Of "apps/v1 DaemonSet", called "kube-system/canal" or "default". */
export function object(type: string, name: string, fields: Fields = {}): ApiObject {
  const [apiVersion, kind] = type.split(' ')
  const [first = '', second] = name.split('/')
  const names = second === undefined ? { name: first } : { namespace: first, name: second }
  const { metadata = {}, ...rest } = fields
  return asApiObject({ apiVersion, kind, metadata: { ...names, ...fieldsOf(metadata) }, ...rest })
}

/** "v3.27.0" of "3.27" */
export function tagOf(version: string): string {
  return `v${version.split('.').length < 3 ? `${version}.0` : version}`
}

export function facts(objects: readonly ApiObject[], serverVersion: string | undefined = 'v1.34.1'): UpgradeFacts {
  return { serverVersion, objects }
}

/** With these objects in place of those of the same kind and name. */
export function withObjects(all: readonly ApiObject[], ...others: readonly ApiObject[]): readonly ApiObject[] {
  const keyOf = ({ apiVersion, kind, metadata: { namespace, name } }: ApiObject): string =>
    JSON.stringify([apiVersion, kind, namespace, name])
  const keys = new Set(others.map(keyOf))
  return [...all.filter((one) => !keys.has(keyOf(one))), ...others]
}

/** A cluster of two nodes. */
export function installed(version: Version, form: Form): readonly ApiObject[] {
  const { namespace } = placeOf(form)
  const name = daemonSetName(form)
  return [
    ...['a', 'b'].map((node) => object('v1 Node', node, { metadata: { labels: { 'kubernetes.io/os': 'linux' } } })),
    object('v1 Namespace', namespace),
    daemonSet(version, form),
    ...['a', 'b'].map((node) => agentPod(`${namespace}/${name}-${node}`, { node, daemonSet: name, tag: tagOf(version) })),
    ...(isOperators(form) ? operatorObjects(version, form) : manifestObjects(version, form)),
    ...(form.endsWith('etcd') ? [] : storedObjects(version)),
  ]
}

export function isOperators(form: Form): boolean {
  return form === 'operator' || form === 'chart'
}

export function daemonSetName(form: Form): string {
  return form === 'canal' ? 'canal' : form === 'canal-etcd' ? 'canal-node' : 'netplane-node'
}

function placeOf(form: Form): { readonly namespace: string; readonly configMap: string } {
  return {
    namespace: isOperators(form) ? 'netplane-system' : 'kube-system',
    configMap: form.startsWith('canal') ? 'canal-config' : 'netplane-config',
  }
}

/** Of an agent, ready. */
export function agentPod(name: string, { node, daemonSet: owner, tag, ready = true }: AgentPod): ApiObject {
  return object('v1 Pod', name, {
    metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: owner, uid: 'd', controller: true }] },
    spec: { nodeName: node, containers: [{ name: 'netplane-node', image: `registry.example.com:5000/netplane/node:${tag}` }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  })
}

interface AgentPod {
  readonly node: string
  readonly daemonSet: string
  readonly tag: string
  readonly ready?: boolean
}

function daemonSet(version: Version, form: Form): ApiObject {
  const { namespace } = placeOf(form)
  const name = daemonSetName(form)
  const flannel = form === 'canal' ? [flannelCalled('kube-flannel')] : form === 'canal-etcd' ? [flannelCalled('flannel')] : []
  const volumes = form.endsWith('etcd') ? [{ name: 'etcd-certs', secret: { secretName: 'netplane-etcd-secrets' } }] : []
  const agent = { name: 'netplane-node', image: `registry.example.com:5000/netplane/node:${tagOf(version)}`, env: environment(form) }
  return object('apps/v1 DaemonSet', `${namespace}/${name}`, {
    metadata: { labels: { 'k8s-app': name }, ...(isOperators(form) ? { ownerReferences: [INSTALLATION_OWNER] } : {}) },
    spec: {
      selector: { matchLabels: { 'k8s-app': name } },
      template: {
        metadata: { labels: { 'k8s-app': name } },
        spec: {
          hostNetwork: true,
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          initContainers: [{ name: 'install-cni', image: `registry.example.com:5000/netplane/cni:${tagOf(version)}` }],
          containers: [agent, ...flannel],
          volumes: [{ name: 'lib-modules', hostPath: { path: '/lib/modules' } }, ...volumes],
        },
      },
    },
  })
}

function flannelCalled(name: string): object {
  return { name, image: 'flannel:v0.24.4' }
}

function deployment(name: string, image: string, metadata: Fields = {}): ApiObject {
  const labels = { 'k8s-app': name.replace(/.*\//, '') }
  const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } } }
  return object('apps/v1 Deployment', name, { metadata, spec })
}

const INSTALLATION_OWNER = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default', uid: 'i', controller: true }

function environment(form: Form): readonly object[] {
  const { configMap } = placeOf(form)
  const said = (name: string, value: string): object => ({ name, value })
  const from = (name: string, key: string): object => ({ name, valueFrom: { configMapKeyRef: { name: configMap, key } } })
  const etcd = form.endsWith('etcd')
  const backend = isOperators(form)
    ? said('NETPLANE_NETWORKING_BACKEND', 'bird')
    : form === 'policy-only' || form.startsWith('canal')
      ? said('NETPLANE_NETWORKING_BACKEND', 'none')
      : from('NETPLANE_NETWORKING_BACKEND', 'netplane_backend')
  return [
    ...(etcd ? [from('ETCD_ENDPOINTS', 'etcd_endpoints')] : [said('DATASTORE_TYPE', 'kubernetes')]),
    { name: 'NODENAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    backend,
    from('FELIX_VXLANMTU', 'veth_mtu'),
    said('FELIX_DEFAULTENDPOINTTOHOSTACTION', 'ACCEPT'),
    ...(form === 'bpf' ? [said('FELIX_BPFENABLED', 'true')] : []),
  ]
}

function manifestObjects(version: Version, form: Form): readonly ApiObject[] {
  const { configMap } = placeOf(form)
  const backend =
    form === 'vxlan' ? { netplane_backend: 'vxlan' } : /^(netplane|typha|bpf|etcd)$/.test(form) ? { netplane_backend: 'bird' } : {}
  const etcd = form.endsWith('etcd') ? { etcd_endpoints: 'https://192.0.2.1:2379' } : {}
  return [
    object('v1 ConfigMap', `kube-system/${configMap}`, { data: { veth_mtu: version === '3.15' ? '1440' : '0', ...backend, ...etcd } }),
    deployment('kube-system/netplane-controllers', `netplane/controllers:${tagOf(version)}`),
    ...(form === 'typha' || form === 'policy-only' ? [deployment('kube-system/netplane-typha', `netplane/typha:${tagOf(version)}`)] : []),
  ]
}

function operatorObjects(version: Version, form: Form): readonly ApiObject[] {
  const helm = { 'meta.helm.sh/release-name': 'netplane', 'meta.helm.sh/release-namespace': 'netplane-operator' }
  const marks = form === 'chart' ? { annotations: helm, labels: { 'app.kubernetes.io/managed-by': 'Helm' } } : {}
  const release = (revision: number, status: string): ApiObject =>
    object('v1 Secret', `netplane-operator/sh.helm.release.v1.netplane.v${revision}`, {
      metadata: { labels: { owner: 'helm', name: 'netplane', status, version: String(revision) } },
    })
  return [
    object('v1 Namespace', 'netplane-operator'),
    deployment('netplane-operator/netplane-operator', `netplane/operator:${tagOf(version)}`, marks),
    definition('installations.operator.netplane.io', { group: 'operator.netplane.io', version: 'v1', kind: 'Installation' }),
    object('operator.netplane.io/v1 Installation', 'default', { spec: { cni: { type: 'Netplane' } } }),
    deployment('netplane-system/netplane-controllers', `netplane/controllers:${tagOf(version)}`),
    deployment('netplane-system/netplane-typha', `netplane/typha:${tagOf(version)}`),
    ...(form === 'chart' ? [release(1, 'superseded'), release(2, 'deployed')] : []),
  ]
}

function storedObjects(version: Version): readonly ApiObject[] {
  return [
    definition('clusterinformations.crd.netplane.io', { group: 'crd.netplane.io', version: 'v1', kind: 'ClusterInformation' }),
    definition('felixconfigurations.crd.netplane.io', { group: 'crd.netplane.io', version: 'v1', kind: 'FelixConfiguration' }),
    information('crd.netplane.io/v1', { netplaneVersion: tagOf(version), datastoreReady: true }),
    object('crd.netplane.io/v1 FelixConfiguration', 'default', { spec: { logSeverityScreen: 'Info' } }),
  ]
}

export function information(apiVersion: string, spec: Fields): ApiObject {
  return object(`${apiVersion} ClusterInformation`, 'default', { spec })
}

const ANY = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

export function definition(name: string, of: DefinitionSpec): ApiObject {
  const { group, version, kind, storedVersions = [version], metadata = {} } = of
  return object('apiextensions.k8s.io/v1 CustomResourceDefinition', name, {
    metadata,
    spec: {
      ...{ group, scope: 'Cluster', names: { kind, plural: name.split('.')[0] } },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: ANY } }],
    },
    status: { storedVersions },
  })
}

interface DefinitionSpec {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly storedVersions?: readonly string[]
  readonly metadata?: Fields
}
