// SPDX-License-Identifier: Apache-2.0
/** deploy/chart with Helm itself, a real API server and a real operator. No controller runs here: of the hook's Job
 * the test does what a kubelet and the controller of Jobs would. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { waitFor } from '../../../lab/wait.ts'
import { HELM_VERSIONS, helmPrograms, type HelmVersion } from '../../../testkit/kubernetes/build/helm.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { at, found, tokenOf } from '../objects.ts'
import { OPERATOR_PROGRAM, run, startOperator, stopProcess, type Ended } from '../run.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeoutMs: HANG_MS, everyMs: 50 }
const NAMESPACE = 'netplane-operator'
const CHART = join(packageRoot(), 'deploy/chart')
const RELEASE = ['netplane', CHART, '--namespace', NAMESPACE] as const
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }
const OPERATOR: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: NAMESPACE, name: 'netplane-operator' }
const LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: NAMESPACE, name: 'netplane-operator' }
const POOL: Named = { apiVersion: 'netplane.io/v3', kind: 'IPPool', name: 'ipv4-10-28-0-0-16' }
const JOB: Named = { apiVersion: 'batch/v1', kind: 'Job', namespace: NAMESPACE, name: 'netplane-removal' }
const KINDS = [
  ['v1', 'ServiceAccount'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRoleBinding'],
  ['rbac.authorization.k8s.io/v1', 'Role'],
  ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
  ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy'],
  ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding'],
  ['apps/v1', 'DaemonSet'],
  ['apps/v1', 'Deployment'],
  ['operator.netplane.io/v1', 'Installation'],
] as const

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let programs: Readonly<Record<HelmVersion, string>>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-chart-'))
  programs = await helmPrograms()
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

describe.each(ofMatrix(HELM_VERSIONS, HELM_VERSIONS.slice(0, 1)))('helm %s', (version) => {
  let operator: ChildProcess | undefined

  const helm = async (...args: readonly string[]): Promise<Ended> =>
    await run(programs[version], args, { KUBECONFIG: cluster.kubeconfig(), HOME: folder })
  const succeeds = async (...args: readonly string[]): Promise<string> => {
    const { code, output } = await helm(...args)
    if (code !== 0) throw new Error(output)
    return output
  }
  const rendered = async (...args: readonly string[]): Promise<readonly ApiObject[]> =>
    loadAll(await succeeds('template', ...RELEASE, ...args))
      .filter((object) => object !== null)
      .map(asApiObject)

  afterAll(async () => {
    await stopProcess(operator, 'SIGKILL')
    // the account with which an operator gives it back is gone by then
    for (const left of [AGENTS, LEASE]) await client.delete(left).catch(() => undefined)
  })

  test('finds nothing to say of it', async () => {
    expect(await succeeds('lint', '--strict', CHART)).toContain('1 chart(s) linted, 0 chart(s) failed')
  })

  test('makes of its own values what the manifests have', async () => {
    const applied = ['netplane-operator.yaml', 'custom-resources.yaml'].flatMap((name) =>
      loadAll(readFileSync(join(packageRoot(), 'deploy/operator', name), 'utf8')).map(asApiObject),
    )
    const keep = { 'helm.sh/resource-policy': 'keep' }
    const expected = applied
      .filter(({ kind }) => kind !== 'Namespace')
      .map((object) => (object.kind === 'Installation' ? { ...object, metadata: { ...object.metadata, annotations: keep } } : object))
    expect(byKind(await rendered('--no-hooks'))).toEqual(byKind(expected))
  })

  test('puts every value in its place', async () => {
    const objects = await rendered(
      ...['--set', 'netplaneOperator.registry=registry.example.com:5000/,netplaneOperator.version=3.31.9,imagePullSecrets[0].name=s'],
      ...['--set', 'dnsConfig.nameservers={169.254.169.253},nodeSelector.role=net,podAnnotations.a=b,uninstallTimeout=600'],
      ...['--set', 'clusterServicesEndpoint.host=api.internal,clusterServicesEndpoint.port=443,installation.enabled=false'],
      ...['--set-json', 'tolerations=[{"key":"x"}]', '--set', 'resources.requests.cpu=1'],
    )
    const pod = {
      imagePullSecrets: [{ name: 's' }],
      dnsConfig: { nameservers: ['169.254.169.253'] },
      nodeSelector: { 'kubernetes.io/os': 'linux', role: 'net' },
      tolerations: [{ key: 'x' }],
      containers: [{ image: 'registry.example.com:5000/netplane:3.31.9', resources: { requests: { cpu: 1, memory: '110Mi' } } }],
    }
    const of = (kind: string): unknown => objects.find((object) => object.kind === kind)
    expect(of('Deployment')).toMatchObject({ spec: { template: { metadata: { annotations: { a: 'b' } }, spec: pod } } })
    expect(of('Job')).toMatchObject({ spec: { template: { spec: pod } } })
    expect(at(of('Job'), 'spec', 'template', 'spec', 'containers', '0', 'args')).toEqual(['remove', '--timeout=600'])
    expect(of('ConfigMap')).toMatchObject({ data: { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '443' } })
    expect(of('Installation')).toBeUndefined()
  })

  test.each([
    ['installation.netplaneNetwork.linuxDataplane=eBPF', "/installation/netplaneNetwork/linuxDataplane': value must be one of"],
    ['installation.netplaneNetwork.hostports=Enabled', "/installation/netplaneNetwork': additional properties 'hostports' not allowed"],
    ['installation.cni.binDir=bin', "/installation/cni/binDir': 'bin' does not match pattern"],
    ['dnsConfig.nameservers={dns.example.com}', "/dnsConfig/nameservers/0': "],
    ['clusterServiceEndpoint.host=api', "additional properties 'clusterServiceEndpoint' not allowed"],
    ['clusterServicesEndpoint.host=api', 'clusterServicesEndpoint.port is missing'],
    ['clusterServicesEndpoint.host=api,clusterServicesEndpoint.port=99999', "/clusterServicesEndpoint/port': "],
    ['clusterServicesEndpoint.host=api,clusterServicesEndpoint.port=https', "/clusterServicesEndpoint/port': "],
  ])('refuses %s by its path', async (value, message) => {
    const { code, output } = await helm('template', ...RELEASE, '--set', value)
    expect(code).not.toBe(0)
    expect(output).toContain(message)
  })

  test('installs it: the operator may do its work by the account that it gets, and serves the Installation', async () => {
    // before anything else, as the page has it
    await client.apply(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }))
    const metadata = { namespace: NAMESPACE, name: 'cluster-services-endpoint' }
    const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
    await client.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }))
    expect(await succeeds('install', ...RELEASE)).toContain('helm uninstall takes Netplane off every node first')
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: NAMESPACE, name: 'netplane-operator' }
    operator = startOperator(cluster.kubeconfig({ token: await tokenOf(client, account) }), join(folder, `operator-${version}.log`))
    expect(at(await waitFor(() => found(client, AGENTS), SOON), 'spec', 'template', 'spec', 'hostNetwork')).toBe(true)
    expect(at(await found(client, INSTALLATION), 'spec')).toEqual({ variant: 'Netplane', netplaneNetwork: { linuxDataplane: 'BPF' } })
  })

  test('upgrades it: changed values arrive, and what was patched by hand stays', async () => {
    await client.patch(OPERATOR, { spec: { template: { spec: { dnsConfig: { nameservers: ['169.254.169.253'] } } } } }, { type: 'merge' })
    const pool = 'installation.netplaneNetwork.ipPools[0].cidr=10.28.0.0/16'
    await succeeds('upgrade', ...RELEASE, '--set', `installation.nodeUpdateStrategy.maxUnavailable=2,${pool},podAnnotations.a=b`)
    const maxUnavailable = async (): Promise<unknown> =>
      at(await found(client, AGENTS), 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable')
    await expect.poll(maxUnavailable).toBe(2)
    await waitFor(() => found(client, POOL), SOON)
    expect(at(await found(client, OPERATOR), 'spec', 'template')).toMatchObject({
      metadata: { annotations: { a: 'b' } },
      spec: { dnsConfig: { nameservers: ['169.254.169.253'] } },
    })
  })

  test('and the operator take nothing for their own that is the other’s', async () => {
    const all = (await Promise.all(KINDS.map(([apiVersion, kind]) => client.list({ apiVersion, kind })))).flat()
    const of = (owner: string): readonly ApiObject[] =>
      all.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/managed-by'] === owner)
    expect(of('Helm').map(({ kind }) => kind)).toEqual(expect.arrayContaining(['Deployment', 'Installation', 'ClusterRole']))
    expect(of('netplane-operator').map(({ kind }) => kind)).toEqual(expect.arrayContaining(['DaemonSet', 'ClusterRole']))
    expect(of('Helm').filter((object) => writersOf(object).includes('netplane-operator'))).toEqual([])
    expect(of('netplane-operator').filter((object) => writersOf(object).some((writer) => /helm/i.test(writer)))).toEqual([])
    const conditions = at(await found(client, { ...INSTALLATION, kind: 'NetplaneStatus', name: 'network' }), 'status', 'conditions')
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Degraded', status: 'False' }))
  })

  test('leaves the Installation when it is no longer a value', async () => {
    await succeeds('upgrade', ...RELEASE, '--set', 'installation.enabled=false')
    const installation = await found(client, INSTALLATION)
    expect(installation).toBeDefined()
    expect(installation?.metadata.deletionTimestamp).toBeUndefined()
  })

  test('uninstalls nothing while something keeps the Installation, which is told', async () => {
    // it is a value once more
    await succeeds('upgrade', ...RELEASE, '--set', 'installation.enabled=true')
    await client.patch(INSTALLATION, { metadata: { finalizers: ['example.com/held'] } }, { type: 'merge' })
    const [uninstalled, removed] = await Promise.all([
      helm('uninstall', 'netplane', '--namespace', NAMESPACE),
      runJob(['--timeout=2'], `removal-${version}`),
    ])
    expect(removed).toMatchObject({ code: 1 })
    expect(removed.output).toContain('finalizers example.com/held')
    expect(removed.output).toContain('Installation default is still there after 2 s')
    expect(uninstalled.code).not.toBe(0)
    expect(await found(client, OPERATOR)).toBeDefined()
  })

  test('uninstalls it once the Installation is gone; definitions and pools stay', async () => {
    const free = async (): Promise<unknown> => {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      return await client.patch(INSTALLATION, { metadata: { finalizers: [] } }, { type: 'merge' })
    }
    const [uninstalled, removed] = await Promise.all([
      helm('uninstall', 'netplane', '--namespace', NAMESPACE),
      runJob([], `removal-${version}-again`),
      free(),
    ])
    expect(removed).toMatchObject({ code: 0 })
    // as the page says, Helm names what it has left alone, though the Job has deleted it
    expect(uninstalled).toMatchObject({ code: 0, output: expect.stringContaining('kept due to the resource policy') as string })
    expect(await found(client, INSTALLATION)).toBeUndefined()
    for (const gone of [OPERATOR, JOB]) expect(await found(client, gone)).toBeUndefined()
    for (const kind of ['ServiceAccount', 'ClusterRole'])
      for (const name of ['netplane-operator', 'netplane-removal']) {
        const apiVersion = kind === 'ServiceAccount' ? 'v1' : 'rbac.authorization.k8s.io/v1'
        const namespace = kind === 'ServiceAccount' ? NAMESPACE : undefined
        expect(await found(client, { apiVersion, kind, namespace, name })).toBeUndefined()
      }
    expect(await found(client, POOL)).toBeDefined()
  })
})

/** What the hook's Job does once it is there, by its own account, and then its end as Helm is to hear of it. */
async function runJob(more: readonly string[], token: string): Promise<Ended> {
  const job = await waitFor(async () => {
    const one = await found(client, JOB)
    return at(one, 'status', 'conditions') === undefined ? one : undefined
  }, SOON)
  const pod = at(job, 'spec', 'template', 'spec')
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: NAMESPACE, name: String(at(pod, 'serviceAccountName')) }
  const args: unknown = at(pod, 'containers', '0', 'args')
  const kubeconfig = cluster.kubeconfig({ token: await tokenOf(client, account), name: token })
  const ended = await run(process.execPath, [OPERATOR_PROGRAM, ...(args as readonly string[]), ...more, '--kubeconfig', kubeconfig])
  const now = new Date().toISOString().replace(/\.\d+/, '')
  const conditions = (ended.code === 0 ? ['SuccessCriteriaMet', 'Complete'] : ['FailureTarget', 'Failed']).map((type) => ({
    ...{ type, status: 'True', lastProbeTime: now, lastTransitionTime: now },
    ...{ reason: 'Test', message: ended.output.slice(-200) },
  }))
  const counts = ended.code === 0 ? { succeeded: 1, completionTime: now } : { failed: 1 }
  await client.patch(JOB, { status: { startTime: now, ...counts, conditions } }, { type: 'merge', subresource: 'status' })
  return ended
}

/** Sorted, as text that can be compared. */
function byKind(objects: readonly ApiObject[]): Readonly<Record<string, ApiObject>> {
  return Object.fromEntries(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]))
}

/** Of the object itself: a status is written by others. */
function writersOf({ metadata }: ApiObject): readonly string[] {
  const entries = metadata['managedFields']
  return (Array.isArray(entries) ? entries : []).flatMap((entry: unknown) =>
    at(entry, 'subresource') === undefined ? [String(at(entry, 'manager'))] : [],
  )
}
