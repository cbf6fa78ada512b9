// SPDX-License-Identifier: Apache-2.0
/** A version, installed in one of the ways that there were and edited since, in a real API server. Layer: test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import {
  daemonSetName,
  definition,
  installed,
  isOperators,
  object,
  STORED_BY,
  tagOf,
  type MatrixForm,
} from '../../upgrade/found/installed.ts'
import { common } from '../../upgrade/stored/installation.ts'
import type { Version } from '../../upgrade/stored/stored.ts'
import { soon } from '../controllers/controllers.ts'
import { run } from '../run.ts'
import type { OldCluster } from './old-cluster.ts'
import { asServed, labelled, plantStored } from './plant.ts'

export const NODES = ['a', 'b']
export const OPERATOR: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'netplane-operator', name: 'netplane-operator' }
export const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }

/** What a person has given to the agents. */
export const EDITED_REQUESTS = { cpu: '333m' }
/** And to the operator's pods. */
export const EDITED_TOLERATIONS = [{ key: 'dedicated', operator: 'Exists' }]

export const METRICS_PORT = 9091

const SPEC = {
  variant: 'Netplane',
  netplaneNetwork: { bgp: 'Disabled', linuxDataplane: 'Iptables', ipPools: [{ cidr: '10.244.0.0/16' }] },
  componentResources: [{ componentName: 'Node', resourceRequirements: { requests: EDITED_REQUESTS } }],
  controlPlaneReplicas: 2,
  nodeMetricsPort: METRICS_PORT,
}

/** Resolves when its agents run on all nodes. */
export async function plantForm(old: OldCluster, version: Version, form: MatrixForm): Promise<void> {
  const { client } = old
  const { objects, pods, nodes } = common(version, STORED_BY[form])
  await old.addNodes(NODES)
  for (const { apiVersion, kind, metadata, spec } of nodes.map(asApiObject))
    await client.patch({ apiVersion, kind, name: metadata.name }, { spec }, { type: 'merge' })
  await plantStored(client, { objects, pods: pods.map(asApiObject).map(labelled), environment: {}, nodes: [], now: 0 })
  if (form === 'operator' || form === 'chart') await plantOperators(old, version, form)
  else {
    const manifest = pristineManifest(tagOf(version).slice(1), form).map(asServed)
    for (const one of manifest) await client.create(one, { fieldManager: 'kubectl-create' })
    await editManifest(old, form)
  }
  await soon('old agents run', async () => runsOnAll(await client.get(agentsOf(form))))
}

export function agentsOf(form: MatrixForm): Named {
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: agentsNamespace(form), name: daemonSetName(form) }
}

export function controllersOf(form: MatrixForm): Named {
  return { apiVersion: 'apps/v1', kind: 'Deployment', namespace: agentsNamespace(form), name: 'netplane-controllers' }
}

export function agentsNamespace(form: MatrixForm): string {
  return isOperators(form) ? 'netplane-system' : 'kube-system'
}

function runsOnAll({ metadata, status }: ApiObject): boolean {
  const { observedGeneration, updatedNumberScheduled, numberReady } = fieldsOf(status)
  return observedGeneration === metadata['generation'] && updatedNumberScheduled === NODES.length && numberReady === NODES.length
}

async function editManifest({ client }: OldCluster, form: MatrixForm): Promise<void> {
  const level = [{ name: 'FELIX_LOGSEVERITYSCREEN', value: 'Debug' }]
  const agent = { name: 'netplane-node', env: level, resources: { requests: EDITED_REQUESTS } }
  const controllers = { name: 'netplane-controllers', env: [{ name: 'LOG_LEVEL', value: 'debug' }] }
  const edits = [
    [agentsOf(form), agent],
    [controllersOf(form), controllers],
  ] as const
  for (const [workload, container] of edits) {
    const spec = { template: { spec: { containers: [container] } } }
    await client.patch(workload, { spec }, { type: 'strategic', fieldManager: 'kubectl-edit' })
  }
}

/** An operator, and what it has made. */
async function plantOperators(old: OldCluster, version: Version, form: 'operator' | 'chart'): Promise<void> {
  const { client } = old
  await client.create(
    definition('installations.operator.netplane.io', { group: 'operator.netplane.io', version: 'v1', kind: 'Installation' }),
  )
  await soon('the definition is served', async () => {
    await client.list({ apiVersion: INSTALLATION.apiVersion, kind: INSTALLATION.kind })
    return true
  })
  const all = installed(version, 'operator')
  const operator = withTolerations(all.find(({ kind, metadata }) => kind === OPERATOR.kind && metadata.name === OPERATOR.name))
  const installation = object('operator.netplane.io/v1 Installation', 'default', { spec: SPEC })
  if (form === 'chart') await installChart(old, tagOf(version).slice(1), [operator, installation])
  else
    for (const one of [object('v1 Namespace', 'netplane-operator'), operator, installation])
      await client.create(one, { fieldManager: 'kubectl-create' })
  const { uid } = (await client.get(INSTALLATION)).metadata
  for (const one of all.filter((made) => isMade(made, agentsNamespace(form))))
    await client.create(owned(one, uid), { fieldManager: 'operator' })
}

/** A release of an older chart. */
async function installChart(old: OldCluster, version: string, objects: readonly ApiObject[]): Promise<void> {
  const chart = join(old.folder, 'chart')
  mkdirSync(join(chart, 'templates'), { recursive: true })
  writeFileSync(join(chart, 'Chart.yaml'), JSON.stringify({ apiVersion: 'v2', name: 'netplane', version }))
  for (const one of objects) writeFileSync(join(chart, 'templates', `${one.kind}.yaml`), JSON.stringify(one))
  const args = ['install', 'netplane', chart, '--namespace', 'netplane-operator', '--create-namespace', '--kubeconfig', old.kubeconfig]
  const { code, output } = await run(join(old.programs, 'helm'), args)
  if (code !== 0) throw new Error(output)
}

function withTolerations(operator: ApiObject | undefined): ApiObject {
  if (operator === undefined) throw new Error('no operator')
  const { template, ...spec } = fieldsOf(operator['spec'])
  const { spec: pod, ...rest } = fieldsOf(template)
  const edited = { ...rest, spec: { ...fieldsOf(pod), tolerations: EDITED_TOLERATIONS } }
  return { ...operator, spec: { ...spec, template: edited } }
}

/** By the operator. */
function isMade({ kind, metadata: { name, namespace = name } }: ApiObject, system: string): boolean {
  return ['Namespace', 'DaemonSet', 'Deployment'].includes(kind) && namespace === system
}

/** By the Installation that there is. */
function owned(one: ApiObject, uid: string | undefined): ApiObject {
  if (one.metadata['ownerReferences'] === undefined) return one
  const owner = { apiVersion: INSTALLATION.apiVersion, kind: INSTALLATION.kind, name: 'default', uid, controller: true }
  return { ...one, metadata: { ...one.metadata, ownerReferences: [owner] } }
}
