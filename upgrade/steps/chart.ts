// SPDX-License-Identifier: Apache-2.0
/** A release of the chart, upgraded by helm. Layer: upgrade. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import type { Clock } from '#lib/base/clock.ts'
import { runBound } from '#lib/base/os/bound-tool.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { CHART_VALUES } from '../found/release.ts'
import { StepFailedError } from '../storage/options.ts'
import { INSTALLATION } from './names.ts'
import { operatorPods } from './operator-pods.ts'
import type { Step, Tell } from './step.ts'
import { workloadImage } from './workload-image.ts'

export interface ChartInput {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'patch' | 'delete'>
  readonly clock: Clock
  /** "netplane-operator/netplane" */
  readonly release: string
  /** folder, archive or reference of this version's chart */
  readonly chart: string
  /** "3.31.5" */
  readonly version: string
  /** by which helm reaches the cluster; undefined: its own way */
  readonly kubeconfig: string | undefined
  readonly timeoutMs: number
  /** the image that they will have */
  readonly agents: string
}

/** for helm to say that its own time is over */
const GRACE_MS = 10_000
/** for helm that was asked to end */
const ENDING_MS = 10_000
const LOOK_MS = 200

export function chartStep(input: ChartInput): Step {
  const { client, release, chart, version, agents } = input
  const [namespace = '', name = ''] = release.split('/')
  const place = placeOf(namespace)
  return {
    name: 'chart',
    about: `upgrades release ${name} of namespace ${namespace} to the chart of v${version}, with the values that it has by now; its agents are ${agents}`,
    commands: [
      `kubectl --namespace ${namespace} delete deployment ${OPERATOR}`,
      `helm upgrade ${name} ${chart} --namespace ${namespace} --reset-values --values values.json --wait`,
    ],
    look: async (signal) => {
      const found = await getOrNone(client, place.deployment, { signal })
      const isNew = found !== undefined && workloadImage(found).endsWith(`:${version}`)
      return { isDone: isNew && (await keptValues(client, place, signal)) === undefined, problems: [] }
    },
    run: async (signal, tell) => {
      const kept = await keptValues(client, place, signal)
      if (kept !== undefined) await takeBackPending(input, { namespace, name, tell }, signal)
      const values = kept ?? (await presentValues(input, place, signal))
      await keepValues(client, place, { values, signal })
      // its selector cannot be changed, and its pods are stopped
      await removeOlder(input, place, signal)
      tell(await upgrade(input, { namespace, name, values }, signal))
      await keepValues(client, place, { values: undefined, signal })
    },
  }
}

interface Place {
  readonly namespace: Named
  readonly deployment: Named
  readonly endpoint: Named
}

function placeOf(namespace: string): Place {
  return {
    namespace: { apiVersion: 'v1', kind: 'Namespace', name: namespace },
    deployment: { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: OPERATOR },
    endpoint: { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: ENDPOINT_MAP },
  }
}

async function presentValues({ client, version }: ChartInput, { deployment, endpoint }: Place, signal: AbortSignal): Promise<object> {
  const operator = await client.get(deployment, { signal })
  const [installation, map] = await Promise.all([INSTALLATION, endpoint].map((named) => getOrNone(client, named, { signal })))
  return chartValues({ operator, installation, endpoint: map, version })
}

async function keptValues(client: ChartInput['client'], { namespace }: Place, signal: AbortSignal): Promise<object | undefined> {
  const text = (await getOrNone(client, namespace, { signal }))?.metadata.annotations?.[CHART_VALUES]
  return text === undefined ? undefined : fieldsOf(JSON.parse(text))
}

interface Kept {
  readonly values: object | undefined
  readonly signal: AbortSignal
}

async function keepValues(client: ChartInput['client'], { namespace }: Place, { values, signal }: Kept): Promise<void> {
  const annotations = { [CHART_VALUES]: values === undefined ? null : JSON.stringify(values) }
  await client.patch(namespace, { metadata: { annotations } }, { type: 'merge', signal })
}

async function removeOlder({ client, version }: ChartInput, { deployment }: Place, signal: AbortSignal): Promise<void> {
  const found = await getOrNone(client, deployment, { signal })
  if (found === undefined || workloadImage(found).endsWith(`:${version}`)) return
  await client.delete(deployment, { preconditions: { uid: found.metadata.uid ?? '' }, signal })
}

interface Pending {
  readonly namespace: string
  readonly name: string
  readonly tell: Tell
}

/** Helm of a run that was killed together with it has left a revision that it refuses to go on from. One that still
 * runs has been asked to end, and says so in the record. */
async function takeBackPending({ client, clock }: ChartInput, { namespace, name, tell }: Pending, signal: AbortSignal): Promise<void> {
  const end = clock.now() + ENDING_MS
  for (;;) {
    const labelSelector = `owner=helm,name=${name},status in (pending-install,pending-upgrade,pending-rollback)`
    const records = await client.list({ apiVersion: 'v1', kind: 'Secret', namespace }, { labelSelector, metadataOnly: true, signal })
    if (records.length === 0) return
    if (clock.now() >= end) {
      for (const { metadata } of records) {
        tell(`deletes the record ${metadata.name} of a change that was cut off`)
        const preconditions = { uid: metadata.uid ?? '' }
        await client.delete({ apiVersion: 'v1', kind: 'Secret', namespace, name: metadata.name }, { preconditions, signal })
      }
      return
    }
    await clock.sleep(LOOK_MS, signal)
  }
}

export interface ReleaseObjects {
  readonly operator: ApiObject
  readonly installation: ApiObject | undefined
  /** config map of the API server's address */
  readonly endpoint: ApiObject | undefined
  readonly version: string
}

/** What the release has by now, as values of this version's chart. Nothing of the older chart's own is needed: its
 * Installation has been read, and its operator's pods are as they are. What is not helm's stays so. */
export function chartValues({ operator, installation, endpoint, version }: ReleaseObjects): object {
  const { pods, registry, imagePath } = operatorPods(operator)
  const { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port } = fieldsOf(endpoint?.['data'])
  return {
    installation: isOfHelm(installation) ? { enabled: true, ...fieldsOf(installation['spec']) } : { enabled: false },
    ...(isOfHelm(endpoint) && { clusterServicesEndpoint: { host, port } }),
    netplaneOperator: { registry: [registry, imagePath].filter((part) => part !== '').join('/'), version },
    ...pods,
  }
}

function isOfHelm(object: ApiObject | undefined): object is ApiObject {
  return object?.metadata.annotations?.['meta.helm.sh/release-name'] !== undefined
}

interface Upgrade {
  readonly namespace: string
  readonly name: string
  readonly values: object
}

/** What helm says. It ends with us: a change that goes on by itself would be in the way of the next run. */
async function upgrade(
  { chart, kubeconfig, timeoutMs }: ChartInput,
  { namespace, name, values }: Upgrade,
  signal: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'netplane-values-'))
  try {
    const file = join(folder, 'values.json')
    await writeFile(file, JSON.stringify(values))
    const command = ['helm', 'upgrade', name, chart, '--namespace', namespace, '--reset-values', '--values', file]
    const waits = ['--wait', '--timeout', `${Math.ceil(timeoutMs / 1000)}s`]
    const reaches = kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]
    const said = await runBound([...command, ...waits, ...reaches], { timeoutMs: timeoutMs + GRACE_MS, signal })
    if (said === undefined) throw new StepFailedError('chart', ['there is no helm here: run the command of the plan by hand, then go on'])
    return said.trim()
  } finally {
    await rm(folder, { recursive: true })
  }
}
