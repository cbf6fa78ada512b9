// SPDX-License-Identifier: Apache-2.0
/** The cluster of the kubeconfig in use: what it is, and what has which address in it. Layer: cli. */
import { formatAddr, tryParseAddr } from '#lib/base/ip.ts'
import { ApiClient } from '#lib/api/client.ts'
import { serverVersion } from '#lib/api/identity.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { providerOf, type Provider } from '#lib/render/providers.ts'
import { serverOf } from '../cluster/connect.ts'
import { mayRead } from '../cluster/may-read.ts'
import { readSettings } from '../cluster/settings.ts'
import { linesText } from '../command-result.ts'
import type { Inhabitants } from './address.ts'
import type { ClusterChoice } from './order.ts'

export interface Cluster extends AsyncDisposable {
  readonly client: ApiClient
  readonly server: ApiServer
}

/** Rejects with a ConfigError, or where the cluster is newer by a minor version than this program. */
export async function openCluster({ connection, allowMismatch }: ClusterChoice): Promise<Cluster> {
  const server = serverOf(readSettings({ flags: connection, env: process.env }))
  const client = new ApiClient({ server })
  const close = (): Promise<void> => client[Symbol.asyncDispose]()
  try {
    process.stderr.write(linesText([await mayRead(client, allowMismatch)]))
    return { client, server, [Symbol.asyncDispose]: close }
  } catch (thrown) {
    await close()
    throw thrown
  }
}

export async function nodesOf({ client }: Cluster): Promise<readonly ApiObject[]> {
  return await client.list({ apiVersion: 'v1', kind: 'Node' })
}

export async function detectedProvider({ client }: Cluster, nodes: readonly ApiObject[]): Promise<Provider> {
  return providerOf(await serverVersion(client), nodes)
}

/** What may have one of the hosts as its address. */
export async function inhabitants({ client }: Cluster, nodes: readonly ApiObject[], hosts: readonly string[]): Promise<Inhabitants> {
  const addresses = hosts.map(tryParseAddr).filter((addr) => addr !== undefined)
  // a cluster may have a hundred thousand pods: the server looks for those with the address
  const pods = addresses.map((addr) =>
    client.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: `status.podIP=${formatAddr(addr)}` }),
  )
  const services = await client.list({ apiVersion: 'v1', kind: 'Service' })
  return { nodes, services, pods: (await Promise.all(pods)).flat() }
}
