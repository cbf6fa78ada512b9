// SPDX-License-Identifier: Apache-2.0
/** `install check`: the operator's preflight by hand. It makes a namespace with what asks the nodes, and takes it away
 * again. Layer: cli. */
import { systemClock, type Clock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { getOrNone, isAbsent, listOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { keyOf } from '#lib/api/informer.ts'
import { asApiObject, namedOf, type ApiObject, type Collection, type Named } from '#lib/api/resource.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { renderNamespace } from '#lib/render/render.ts'
import { copyPullSecrets } from '#operator/objects/pull-secrets.ts'
import type { PreflightStep } from '#operator/preflight/preflight.ts'
import { ClusterFactsReader } from '#operator/run/cluster-facts.ts'
import { readInstallation, type Asked } from '#operator/run/desired.ts'
import { readEndpoint } from '#operator/run/endpoint.ts'
import { Gate } from '#operator/run/gate.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { openCluster, type Cluster } from './cluster.ts'
import { InstallError } from './errors.ts'
import { interrupted } from './interrupted.ts'
import { rawSpecIn, readSpec } from './installation.ts'
import type { CheckOrder } from './order.ts'

/** Its own namespace, and name of what is in it: an operator's preflight may run beside. */
const NAMESPACE = 'netplane-check'
const FIELD_MANAGER = 'netplanectl-check'
const LOOK_MS = 500

const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }

/** Exit code 1 while something is in the way, or nodes have not answered in time. Throws ConfigError for a spec that
 * cannot be read, InstallError for an endpoint that cannot. */
export async function checkCommand(order: CheckOrder): Promise<CommandResult> {
  const { file, namespace, timeoutMs, json } = order
  await using cluster = await openCluster(order)
  const installation = await installationOf(cluster, file)
  const [map, nodes] = await Promise.all([
    getOrNone(cluster.client, { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: ENDPOINT_MAP }),
    listed(cluster.client, { apiVersion: 'v1', kind: 'Node' }),
  ])
  const { endpoint, wrong } = readEndpoint(map)
  if (wrong !== undefined) throw new InstallError(wrong.message)
  const signal = interrupted()
  const facts = new ClusterFactsReader(cluster.client)
  const asked = readInstallation(installation, await facts.read({ installation, nodes: nodes.values(), isInstalled: false, signal }))
  const none: Objects = new Map()
  const view = { pods: { objects: none }, nodes: { objects: nodes }, pools: { objects: none }, felixConfigurations: { objects: none } }
  const options = { namespace, systemNamespace: NAMESPACE }
  const gate = new Gate({
    client: cluster.client,
    clock: systemClock,
    view,
    options,
    version: packageVersion(),
    facts,
    preflightName: NAMESPACE,
  })
  const step = async (): Promise<PreflightStep> => {
    view.pods.objects = await listed(cluster.client, { apiVersion: 'v1', kind: 'Pod', namespace: NAMESPACE })
    view.nodes.objects = await listed(cluster.client, { apiVersion: 'v1', kind: 'Node' })
    view.pools.objects = await listed(cluster.client, { apiVersion: 'netplane.io/v3', kind: 'IPPool' })
    view.felixConfigurations.objects = await listed(cluster.client, { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' })
    return await gate.preflight({ asked, endpoint, installation }, signal)
  }
  const answered = await ask(cluster.client, {
    step,
    place: await placeOf(cluster.client, asked, namespace),
    timeoutMs,
    clock: systemClock,
    signal,
  })
  return resultOf(answered, json)
}

/** By "namespace/name". */
type Objects = ReadonlyMap<string, ApiObject>

interface Question {
  readonly step: () => Promise<PreflightStep>
  readonly place: readonly ApiObject[]
  readonly timeoutMs: number
  readonly clock: Clock
  /** ends it early, and nothing is left behind all the same */
  readonly signal: AbortSignal
}

/** Until every node has answered, or is not waited for any more. Leaves nothing behind. */
async function ask(client: ApiClient, { step, place, timeoutMs, clock, signal }: Question): Promise<PreflightStep> {
  const end = clock.now() + timeoutMs
  const made = new Map<string, ApiObject>()
  let applied = ''
  try {
    for (;;) {
      // that of an earlier check may not be gone yet
      const namespace = await getOrNone(client, { apiVersion: 'v1', kind: 'Namespace', name: NAMESPACE })
      if (namespace?.metadata.deletionTimestamp !== undefined && clock.now() < end) {
        await clock.sleep(LOOK_MS, signal)
        continue
      }
      const { objects, ...told } = await step()
      if (told.isPassed || told.state.progressing === undefined || clock.now() >= end) return { objects, ...told }
      const wanted = [...place, ...objects]
      if (JSON.stringify(wanted) !== applied)
        for (const object of wanted) {
          made.set(`${object.kind} ${keyOf(object)}`, object)
          await client.apply(object, { fieldManager: FIELD_MANAGER, signal })
        }
      applied = JSON.stringify(wanted)
      await clock.sleep(LOOK_MS, signal)
    }
  } finally {
    // the namespace takes with it what is in it
    for (const object of made.values()) if (object.metadata.namespace === undefined) await remove(client, namedOf(object))
  }
}

async function remove(client: ApiClient, named: Named): Promise<void> {
  try {
    await client.delete(named)
  } catch (thrown) {
    if (!isAbsent(thrown)) throw thrown
  }
}

/** The file's, else the cluster's, else one that leaves all to the cluster, in BPF mode. */
async function installationOf({ client }: Cluster, file: string | undefined): Promise<ApiObject> {
  const { apiVersion, kind, name } = INSTALLATION
  const from = (spec: unknown): ApiObject => asApiObject({ apiVersion, kind, metadata: { name }, spec })
  if (file === undefined) return (await getOrNone(client, INSTALLATION)) ?? from({ netplaneNetwork: { linuxDataplane: 'BPF' } })
  const spec = rawSpecIn(file)
  readSpec(file, spec)
  return from(spec)
}

/** Where pods of the check are, and what pulls their images. */
async function placeOf(client: ApiClient, { computed }: Asked, from: string): Promise<readonly ApiObject[]> {
  const names = computed.imagePullSecrets
  const sources: Objects = names.length === 0 ? new Map() : await listed(client, { apiVersion: 'v1', kind: 'Secret', namespace: from })
  const { objects, wrong } = copyPullSecrets({ names, found: { from, sources, copies: new Map() }, to: NAMESPACE })
  if (wrong !== undefined) throw new InstallError(wrong.message)
  return [renderNamespace(NAMESPACE), ...objects]
}

async function listed(client: ApiClient, collection: Collection): Promise<Objects> {
  return new Map((await listOrNone(client, collection)).map((object) => [keyOf(object), object]))
}

function resultOf({ isPassed, findings, state }: PreflightStep, json: boolean): CommandResult {
  const open = state.progressing?.message
  const failed = state.degraded !== undefined && state.degraded.reason !== 'Blocked' ? [state.degraded.message] : []
  const exitCode = isPassed ? 0 : 1
  if (json) {
    const record = { passed: isPassed, blocking: findings.blocking, warnings: findings.warnings, failed, waiting: open ?? null }
    return { text: `${JSON.stringify(record, undefined, 1)}\n`, warnings: '', exitCode }
  }
  const lines = [
    ...findings.blocking.map((text) => `blocking  ${text}`),
    ...findings.warnings.map((text) => `warning   ${text}`),
    ...failed.map((text) => `failed    ${text}`),
    ...(open === undefined ? [] : [`open      ${open}`]),
    isPassed ? 'nothing is in the way' : 'not yet: put right what is blocking, and look again',
  ]
  return { text: linesText(lines), warnings: '', exitCode }
}
