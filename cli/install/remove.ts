// SPDX-License-Identifier: Apache-2.0
/** `install remove`: deletes the Installation and waits until its nodes are clean; where there is no operator it does
 * the operator's work itself. Layer: cli. */
import { systemClock } from '#lib/base/clock.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf } from '#lib/api/resource.ts'
import { createLog } from '#lib/obs/log.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { renderNamespace } from '#lib/render/render.ts'
import { removeInstallation, type Removed } from '#operator/run/remove.ts'
import { runOperator } from '#operator/run/run-operator.ts'
import type { CommandResult } from '../command-result.ts'
import { openCluster, type Cluster } from './cluster.ts'
import type { RemoveOrder } from './order.ts'

const ALONE = 'where none is to come, `netplanectl install remove --without-operator` does its work'

export async function removeCommand(order: RemoveOrder): Promise<CommandResult> {
  const { timeoutMs, withoutOperator } = order
  await using cluster = await openCluster(order)
  const stop = new AbortController()
  const print = (text: string): void => {
    process.stderr.write(`${text}\n`)
  }
  const removal = async (): Promise<Removed> => {
    const { client } = cluster
    try {
      if (!withoutOperator && (await isAlone(client, order.namespace))) print(`no operator is ready in ${order.namespace}: ${ALONE}`)
      return await removeInstallation({ client, clock: systemClock, timeoutMs, print })
    } finally {
      stop.abort()
    }
  }
  const [{ isGone, text }] = await Promise.all([removal(), withoutOperator ? operate(cluster, order, stop.signal) : undefined])
  return { text: `${text}\n`, warnings: '', exitCode: isGone ? 0 : 1 }
}

/** No operator is there to clean the nodes; false where that may not be read. */
async function isAlone(client: ApiClient, namespace: string): Promise<boolean> {
  try {
    const found = await getOrNone(client, { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: OPERATOR })
    const ready = fieldsOf(found?.['status'])['readyReplicas']
    return typeof ready !== 'number' || ready === 0
  } catch (thrown) {
    if (isRefused(thrown, 'Forbidden')) return false
    throw thrown
  }
}

/** Until the signal aborts. What goes wrong is on standard error. */
async function operate(cluster: Cluster, { namespace }: RemoveOrder, signal: AbortSignal): Promise<void> {
  await using log = createLog({ level: 'warn', sink: { write: (line) => process.stderr.write(line) } })
  const options = { namespace, node: undefined, systemNamespace: 'netplane-system', healthPort: 0, metricsPort: 0 } as const
  const isOurs = await makePlace(cluster.client, namespace)
  await runOperator({ options, server: () => Promise.resolve({ server: cluster.server }), log, bringsDefinitions: false, signal })
  if (isOurs) await cluster.client.delete(namedOf(renderNamespace(namespace)))
}

/** The Lease has to be somewhere, also where the operator's namespace has gone with its manifest. True: it was made. */
async function makePlace(client: ApiClient, namespace: string): Promise<boolean> {
  const place = renderNamespace(namespace)
  if ((await getOrNone(client, namedOf(place))) !== undefined) return false
  await client.create(place)
  return true
}
