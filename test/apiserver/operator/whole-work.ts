// SPDX-License-Identifier: Apache-2.0
/** All that an operator has to do, one thing after the other: what brings it about, and when it is done.
 * Layer: test. */
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { CLEANUP } from '#lib/render/cleanup-pod.ts'
import { FELIX_CONFIGURATION } from '#lib/render/felix-settings.ts'
import { ENDPOINT_MAP, NODE } from '#lib/render/input.ts'
import { OPERATOR, OUTSIDE } from '#lib/render/operator-pod.ts'
import { ENDPOINT_PROOF, PREFLIGHT } from '#lib/render/preflight-pod.ts'
import { SECURITY_CONSTRAINTS } from '#lib/render/security-constraints.ts'
import { MANAGED_BY } from '#lib/control/declared-managers.ts'
import { FIELD_MANAGER } from '#operator/objects/owned-fields.ts'
import { MARK, markText } from '#operator/switch/mark.ts'
import { PLATFORM_NETWORK, STOP_LABEL, STOP_VALUE } from '#operator/switch/proxy-found.ts'
import { at, listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { put, untilServed } from '../definitions.ts'
import { found as foundIn } from '../objects.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

export const SYSTEM = 'netplane-system'
const OPERATOR_API = 'operator.netplane.io/v1'
const RBAC = 'rbac.authorization.k8s.io'
const ADMISSION = 'admissionregistration.k8s.io/v1'
export const INSTALLATION: Named = { apiVersion: OPERATOR_API, kind: 'Installation', name: 'default' }
export const NETWORK: Named = { apiVersion: OPERATOR_API, kind: 'NetplaneStatus', name: 'network' }
/** the operator's */
export const MACHINE: Named = { apiVersion: 'v1', kind: 'Node', name: 'n1' }
const OTHER_MACHINE: Named = { apiVersion: 'v1', kind: 'Node', name: 'n2' }
const OWN_NETWORK: Named = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', name: 'n1' }
const OTHER_NETWORK: Named = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', name: 'n2' }
const LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: OPERATOR, name: OPERATOR }
const PROXY: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'kube-proxy' }
const OWN_OVERRIDE: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'node.n1' }
const OVERRIDE: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'node.gone' }
/** the administrator's, and its copy */
const SOURCE: Named = { apiVersion: 'v1', kind: 'Secret', namespace: OPERATOR, name: 'pull' }
const COPY: Named = { ...SOURCE, namespace: SYSTEM }

const daemonSet = (name: string): Named => ({ apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: SYSTEM, name })
const constraints = (name: string): Named => ({ ...SECURITY_CONSTRAINTS, name })
const configMap = (name: string): Named => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: SYSTEM, name })

/** Of each kind that the operator takes away one that it has made, and no longer renders. Its config maps and secrets
 * go on the way. */
function leftovers(): readonly ApiObject[] {
  const metadata = { name: 'old', labels: { [MANAGED_BY]: FIELD_MANAGER } }
  const own = { ...metadata, namespace: 'default' }
  // others it may not take away
  const named = (name: string): object => ({ ...own, name })
  const labels = { app: 'old' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const matchConstraints = { resourceRules: [{ apiGroups: ['x'], apiVersions: ['v1'], resources: ['x'], operations: ['CREATE'] }] }
  const policy = { matchConstraints, validations: [{ expression: 'true' }] }
  const roleRef = (kind: string) => ({ apiGroup: RBAC, kind, name: 'old' })
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: named(CLEANUP) },
    { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: named(CLEANUP), spec: { selector: { matchLabels: labels }, template } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: named(CONTROLLERS_NAME), spec: { selector: { matchLabels: labels }, template } },
    { apiVersion: ADMISSION, kind: 'ValidatingAdmissionPolicy', metadata, spec: policy },
    {
      ...{ apiVersion: ADMISSION, kind: 'ValidatingAdmissionPolicyBinding', metadata },
      spec: { policyName: 'old', validationActions: ['Audit'] },
    },
    { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules: [] },
    { apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata, roleRef: roleRef('ClusterRole'), subjects: [] },
    { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata: own, rules: [] },
    { apiVersion: `${RBAC}/v1`, kind: 'RoleBinding', metadata: own, roleRef: roleRef('Role'), subjects: [] },
  ].map(asApiObject)
}

/** As before a first start, but for definitions and namespaces; with leftovers, and an endpoint. */
export async function prepare(admin: ApiClient): Promise<void> {
  const gone = (named: Named): Promise<unknown> => admin.delete(named).catch(() => undefined)
  await admin.patch(INSTALLATION, { metadata: { finalizers: null } }, { type: 'merge' }).catch(() => undefined)
  for (const named of [
    INSTALLATION,
    MACHINE,
    OTHER_MACHINE,
    OWN_NETWORK,
    OTHER_NETWORK,
    LEASE,
    SOURCE,
    FELIX_CONFIGURATION,
    OWN_OVERRIDE,
    OVERRIDE,
    PLATFORM_NETWORK,
    PROXY,
  ])
    await gone(named)
  const all = async (kinds: readonly Pick<Named, 'apiVersion' | 'kind'>[], options = {}): Promise<void> => {
    for (const { apiVersion, kind } of kinds) {
      await untilServed(admin, { apiVersion, kind })
      for (const { metadata } of await admin.list({ apiVersion, kind }, options))
        await gone({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name })
    }
  }
  await all([...leftovers(), COPY, configMap('')], { labelSelector: `${MANAGED_BY}=${FIELD_MANAGER}` })
  await all([NETWORK, { apiVersion: 'netplane.io/v3', kind: 'IPPool' }, { apiVersion: 'v1', kind: 'Event' }])
  for (const object of leftovers()) await admin.apply(object, { fieldManager: FIELD_MANAGER })
  await admin.create(asApiObject({ apiVersion: OPERATOR_API, kind: 'NetplaneStatus', metadata: { name: 'old' } }))
  // of a node that is gone
  const { apiVersion, kind, name } = OVERRIDE
  await admin.apply(asApiObject({ apiVersion, kind, metadata: { name }, spec: { bpfEnabled: true } }), { fieldManager: FIELD_MANAGER })
  await put(admin, { ...PLATFORM_NETWORK, metadata: { name: PLATFORM_NETWORK.name }, spec: { deployKubeProxy: true } })
  await putEndpoint(admin, 'first.internal')
}

async function putEndpoint(admin: ApiClient, host: string): Promise<void> {
  const data = { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: '6443' }
  await admin.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: ENDPOINT_MAP }, data }))
}

/** As an agent has left it; nothing is waited for there. */
async function sayOfNode(admin: ApiClient): Promise<void> {
  const entry = (type: string, status: string, reason: string): object => ({ type, status, reason, message: '' })
  const conditions = [entry('Ready', 'True', 'KubeletReady'), entry('NetworkUnavailable', 'False', 'NetplaneIsUp')]
  await put(admin, { ...OTHER_MACHINE, metadata: { name: OTHER_MACHINE.name, labels: { 'kubernetes.io/os': 'windows' } } })
  await admin.patch(OTHER_MACHINE, { status: { conditions } }, { type: 'merge', subresource: 'status' })
  await put(admin, { ...OTHER_NETWORK, metadata: { name: OTHER_NETWORK.name }, spec: { addresses: ['192.0.2.2'] } })
  const status = { dataplane: { mode: 'BPF', since: '2026-11-26T08:00:00Z' } }
  await admin.patch(OTHER_NETWORK, { status }, { type: 'merge', subresource: 'status' })
}

/** The operator's own node has changed, and another has asked its node ports before. */
async function changeOwnNode(admin: ApiClient): Promise<void> {
  const since = new Date().toISOString()
  const place = '192.0.2.1:30080'
  for (const [machine, network] of [
    [MACHINE, OWN_NETWORK],
    [OTHER_MACHINE, OTHER_NETWORK],
  ] as const) {
    await put(admin, { ...machine, metadata: { name: machine.name, labels: { 'kubernetes.io/os': 'linux' } } })
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }]
    await admin.patch(machine, { status: { conditions } }, { type: 'merge', subresource: 'status' })
    await put(admin, { ...network, metadata: { name: network.name }, spec: {} })
    const proof = { mode: 'BPF', state: 'Proven', asked: 1, answered: 1, failed: [], nodePorts: [place], at: since }
    const status = { dataplane: { mode: 'BPF', since }, proof }
    await admin.patch(network, { status }, { type: 'merge', subresource: 'status' })
  }
  const mark = markText({ to: 'BPF', at: Date.now(), outside: [place], from: OTHER_MACHINE.name })
  const { apiVersion, kind, name } = OWN_OVERRIDE
  const override = { apiVersion, kind, metadata: { name, annotations: { [MARK]: mark } }, spec: { bpfEnabled: true } }
  await admin.apply(asApiObject(override), { fieldManager: FIELD_MANAGER })
}

/** Types of its conditions, and its mode. */
async function saidOfNode(admin: ApiClient): Promise<readonly unknown[]> {
  const [node, network] = [await foundIn(admin, OTHER_MACHINE), await foundIn(admin, OTHER_NETWORK)]
  return [...listAt(node, 'status.conditions').map((one) => textAt(one, 'type')), ...Object.keys(fieldsOf(network?.['status']))]
}

interface Step {
  readonly what: string
  readonly act: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

/** Of an operator that runs, after {@link prepare}. Stops with the operator's words of a refusal; undefined: all is
 * done. */
export async function doAll(admin: ApiClient, refused: () => Promise<string | undefined>): Promise<string | undefined> {
  for (const { what, act, isDone } of steps(admin)) {
    await act()
    const look = async (): Promise<string | undefined> => (await refused()) ?? ((await isDone()) ? '' : undefined)
    const said = await waitFor(look, { timeoutMs: HANG_MS, everyMs: 50 })
    if (said === undefined) throw new Error(`not in time: ${what}`)
    if (said !== '') return said
  }
  return undefined
}

function steps(admin: ApiClient): readonly Step[] {
  const found = (named: Named): Promise<ApiObject | undefined> => foundIn(admin, named)
  const areThere = async (...all: readonly Named[]): Promise<boolean> => !(await Promise.all(all.map(found))).includes(undefined)
  const areGone = async (...all: readonly Named[]): Promise<boolean> =>
    (await Promise.all(all.map(found))).every((one) => one === undefined)
  const degraded = async (): Promise<string | undefined> =>
    listAt(await found(NETWORK), 'status.conditions').flatMap((one) =>
      textAt(one, 'type') === 'Degraded' && textAt(one, 'status') === 'True' ? [textAt(one, 'reason')] : [],
    )[0]
  const events = (): Promise<readonly ApiObject[]> => admin.list({ apiVersion: 'v1', kind: 'Event' })
  const addMachine = (): Promise<unknown> =>
    admin.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: MACHINE.name, labels: { 'kubernetes.io/os': 'linux' } } }))
  const takeMachine = (): Promise<unknown> => admin.delete(MACHINE)
  const ipPools = [{ name: 'pods', cidr: '10.28.0.0/16' }]
  const netplaneNetwork = { linuxDataplane: 'BPF', kubeProxyManagement: 'Enabled', ipPools }
  const spec = { provider: 'OpenShift', netplaneNetwork, imagePullSecrets: [{ name: SOURCE.name }] }
  const secret = { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') } }
  return [
    {
      what: 'a node is looked at, and a pull secret is missed',
      act: async () => {
        await addMachine()
        await put(admin, { ...INSTALLATION, metadata: { name: INSTALLATION.name }, spec })
      },
      isDone: async () => (await areThere(constraints(PREFLIGHT), daemonSet(PREFLIGHT))) && (await degraded()) === 'PullSecretMissing',
    },
    {
      what: 'the secret is copied',
      act: () => put(admin, { ...SOURCE, metadata: { namespace: SOURCE.namespace, name: SOURCE.name }, ...secret }),
      isDone: async () => (await areThere(COPY)) && (await degraded()) === undefined,
    },
    {
      what: 'an event is counted',
      act: () => admin.delete(SOURCE),
      isDone: async () => (await events()).some((one) => textAt(one, 'reason') === 'PullSecretMissing' && numberAt(one, 'count') === 2),
    },
    {
      what: 'the copy goes',
      act: () => admin.patch(INSTALLATION, { spec: { imagePullSecrets: [] } }, { type: 'merge' }),
      isDone: () => areGone(COPY),
    },
    {
      what: 'agents come, what has looked goes, and leftovers do',
      act: takeMachine,
      isDone: async () =>
        (await areThere(constraints(NODE), daemonSet(NODE), { apiVersion: 'netplane.io/v3', kind: 'IPPool', name: 'pods' })) &&
        (await areGone(...[daemonSet(PREFLIGHT), configMap(PREFLIGHT), { ...NETWORK, name: 'old' }, ...leftovers().map(namedOf)])),
    },
    {
      what: 'kube-proxy is stopped, and what is left of another node goes',
      act: () => Promise.resolve(),
      isDone: async () => (await areGone(OVERRIDE)) && at(await found(PLATFORM_NETWORK), 'spec.deployKubeProxy') === false,
    },
    {
      what: 'a node tries another endpoint',
      act: async () => {
        await addMachine()
        await putEndpoint(admin, 'second.internal')
      },
      isDone: () => areThere(daemonSet(ENDPOINT_PROOF), configMap(ENDPOINT_PROOF)),
    },
    {
      what: 'agents have it',
      act: takeMachine,
      isDone: async () =>
        (await areGone(daemonSet(ENDPOINT_PROOF), configMap(ENDPOINT_PROOF))) &&
        JSON.stringify(await found(daemonSet(NODE))).includes('second.internal'),
    },
    {
      what: 'kube-proxy of another platform is stopped',
      act: async () => {
        const labels = { 'k8s-app': PROXY.name }
        const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
        const { apiVersion, kind, namespace, name } = PROXY
        await put(admin, { apiVersion, kind, metadata: { namespace, name }, spec: { selector: { matchLabels: labels }, template } })
        await admin.patch(INSTALLATION, { spec: { provider: 'Generic' } }, { type: 'merge' })
      },
      isDone: async () => fieldsOf(at(await found(PROXY), 'spec.template.spec.nodeSelector'))[STOP_LABEL] === STOP_VALUE,
    },
    {
      what: 'another platform has settings, and no constraints',
      act: async () => {
        await admin.delete(PROXY)
        await admin.patch(INSTALLATION, { spec: { provider: 'MKE' } }, { type: 'merge' })
      },
      isDone: async () => (await areThere(FELIX_CONFIGURATION)) && (await areGone(constraints(NODE))),
    },
    {
      what: 'one of them that goes comes back',
      act: () => admin.patch(FELIX_CONFIGURATION, { spec: { vxlanVNI: null } }, { type: 'merge' }),
      isDone: async () => numberAt(await found(FELIX_CONFIGURATION), 'spec.vxlanVNI') === 10_000,
    },
    {
      what: 'another node asks the operator’s own',
      act: () => changeOwnNode(admin),
      isDone: () => areThere(daemonSet(OUTSIDE)),
    },
    {
      what: 'it does so no longer',
      act: async () => {
        for (const named of [MACHINE, OTHER_MACHINE, OWN_NETWORK, OTHER_NETWORK]) await admin.delete(named)
      },
      isDone: () => areGone(daemonSet(OUTSIDE), OWN_OVERRIDE),
    },
    {
      what: 'a node is cleaned',
      act: async () => {
        await addMachine()
        await sayOfNode(admin)
        await admin.delete(INSTALLATION)
      },
      isDone: async () => (await areThere(daemonSet(CLEANUP))) && (await areGone(daemonSet(NODE))),
    },
    {
      what: 'the Installation goes, and what an agent has said',
      act: takeMachine,
      isDone: async () =>
        (await areGone(INSTALLATION, daemonSet(CLEANUP))) &&
        (await admin.list(NETWORK)).length === 0 &&
        (await saidOfNode(admin)).join() === 'Ready',
    },
  ]
}
