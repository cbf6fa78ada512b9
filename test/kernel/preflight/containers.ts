// SPDX-License-Identifier: Apache-2.0
/** The preflight's pod, run as a kubelet would run it with this machine for its node, and what the operator makes of
 * its termination messages. It leaves its mounts behind. Layer: test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { PROBE_GROUPS } from '#lib/preflight/findings.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { PREFLIGHT } from '#lib/render/preflight-pod.ts'
import { Preflight, type PreflightStep } from '#operator/preflight/preflight.ts'
import { statusConditions, type StatusCondition } from '#operator/status/conditions.ts'
import { listAt, textAt } from '../../../lab/raw.ts'

/** Of the machine, in the cluster that is played. */
const NODE = 'node-a'
const FACTS = { provider: 'Generic', hasKubeProxy: false, installed: undefined } as const
/** Of a log's end, that a kubelet takes in the place of a message. */
const FALLBACK_BYTES = 2048

export interface Told {
  /** of NetplaneStatus `preflight` */
  readonly conditions: readonly StatusCondition[]
  /** that containers left, by their names */
  readonly messages: ReadonlyMap<string, string>
}

/** The operator asks, the containers of its DaemonSet answer, and it reads them. */
export function askThisMachine(address: string): Told {
  const preflight = new Preflight()
  const node = asApiObject({
    ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, labels: { 'kubernetes.io/os': 'linux' } } },
    status: { addresses: [{ type: 'InternalIP', address }] },
  })
  const step = (pods: readonly ApiObject[]): PreflightStep =>
    preflight.step(
      {
        ...{ installation: 'uid', namespace: 'netplane-system', image: 'netplane', cluster: 'uid', serviceAddresses: [] },
        ...{ endpoint: undefined, vxlanPort: undefined, pools: [], endpointPods: [], nodes: [node], now: 0, wall: 0 },
        computed: computeInstallation(installationSpec.read({}), FACTS),
        pods,
      },
      { name: PREFLIGHT, groups: PROBE_GROUPS, clusterFindings: [] },
    )
  const { objects } = step([])
  const pod = podOf(objects)
  mountVolumes(pod, objects)
  const statuses = runContainers(pod, { NODE_NAME: NODE, NODE_ADDRESSES: address })
  const { state } = step([asApiObject({ ...pod, status: { initContainerStatuses: statuses } })])
  const message = (status: object): [string, string] => [textAt(status, 'name') ?? '', textAt(status, 'state.terminated.message') ?? '']
  const now = new Date().toISOString()
  return {
    conditions: statusConditions({ state, generation: 1, found: undefined, now }),
    messages: new Map(statuses.map(message)),
  }
}

/** As the DaemonSet's controller makes it. */
function podOf(objects: readonly ApiObject[]): ApiObject {
  const template = objects.find(({ kind }) => kind === 'DaemonSet')?.['spec']
  const { metadata, spec } = Object(Reflect.get(Object(template), 'template')) as { readonly metadata: object; readonly spec: object }
  return asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: PREFLIGHT }, spec: { ...spec, nodeName: NODE } })
}

/** Of all containers together: their places differ. */
function mountVolumes(pod: ApiObject, objects: readonly ApiObject[]): void {
  const mounts = new Map(
    listAt(pod, 'spec.initContainers').flatMap((container) =>
      listAt(container, 'volumeMounts').map((mount): [string, string] => [textAt(mount, 'name') ?? '', textAt(mount, 'mountPath') ?? '']),
    ),
  )
  for (const volume of listAt(pod, 'spec.volumes')) {
    const place = mounts.get(textAt(volume, 'name') ?? '')
    if (place === undefined) continue
    mkdirSync(place, { recursive: true })
    const [path, map] = [textAt(volume, 'hostPath.path'), textAt(volume, 'configMap.name')]
    if (path !== undefined) execFileSync('mount', ['-o', 'rbind', path, place])
    if (map !== undefined) {
      const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === map)
      for (const [name, text] of Object.entries(Object(found?.['data']) as object)) writeFileSync(join(place, name), String(text))
    }
  }
}

/** One after the other, and none after one that fails. */
function runContainers(pod: ApiObject, variables: Readonly<Record<string, string>>): object[] {
  const statuses: object[] = []
  for (const container of listAt(pod, 'spec.initContainers')) {
    const terminated = runContainer(container, variables)
    statuses.push({ name: textAt(container, 'name'), state: { terminated } })
    if (terminated.exitCode !== 0) break
  }
  return statuses
}

interface Terminated {
  readonly exitCode: number
  readonly reason: string
  readonly message: string
  readonly startedAt: string
  readonly finishedAt: string
}

function runContainer(container: unknown, variables: Readonly<Record<string, string>>): Terminated {
  const [program = '', ...args] = [...listAt(container, 'command'), ...listAt(container, 'args')].map((word) =>
    String(word).replaceAll(/\$\((\w+)\)/g, (whole, name: string) => variables[name] ?? whole),
  )
  const file = textAt(container, 'terminationMessagePath') ?? ''
  rmSync(file, { force: true })
  const startedAt = new Date().toISOString()
  const ended = spawnSync(program, args, { env: { ...process.env, ...variables }, encoding: 'utf8' })
  const exitCode = ended.status ?? 128
  const report = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const isByLog = textAt(container, 'terminationMessagePolicy') === 'FallbackToLogsOnError'
  const log = isByLog && exitCode !== 0 ? `${ended.stdout}${ended.stderr}${ended.error?.message ?? ''}`.slice(-FALLBACK_BYTES) : ''
  const reason = exitCode === 0 ? 'Completed' : 'Error'
  return { exitCode, reason, message: report === '' ? log : report, startedAt, finishedAt: new Date().toISOString() }
}
