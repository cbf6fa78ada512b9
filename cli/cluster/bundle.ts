// SPDX-License-Identifier: Apache-2.0
/** `bundle`: one file with all of a cluster that concerns Netplane. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { archiveCommand } from '../bundle/archive.ts'
import type { Bounds, Part } from '../bundle/collect.ts'
import { redacted } from '../bundle/redact.ts'
import type { CommandResult } from '../command-result.ts'
import { ALL_RESOURCES, apiVersionOf } from '../resources/kinds.ts'
import type { ClusterBundleOrder } from '../resources/order.ts'
import { connect } from './connect.ts'
import { logParts } from './log-parts.ts'
import { OWN_NAMESPACES, ownObjects } from './pods.ts'
import { readSettings } from './settings.ts'
import { readVersions } from './version.ts'

/** Five thousand nodes have twenty megabytes. */
const BOUNDS: Bounds = { partMs: 30_000, wholeMs: 300_000, partBytes: 32 << 20 }

/** Rejects where the API server cannot be asked, or the file cannot be written. */
export async function bundleCommand(order: ClusterBundleOrder): Promise<CommandResult> {
  await using client = connect(readSettings({ flags: order.connection, env: process.env }))
  // else every part would be missing
  await client.request({ method: 'GET', path: '/version' })
  return await archiveCommand(order, {
    name: 'netplane-bundle-cluster',
    heading: (at) => [
      `Netplane ${packageVersion()}: the cluster at ${client.transport.origin}, ${at}.`,
      'Taken by "netplanectl bundle". No object of kind Secret is read; tokens, keys, passwords and certificates are left out.',
      'Addresses, names and labels of objects, and policies are not. Each node has more: "netplanectl node bundle" there.',
    ],
    bounds: BOUNDS,
    parts: () => clusterParts(client, order),
  })
}

async function clusterParts(client: ApiClient, order: ClusterBundleOrder): Promise<readonly Part[]> {
  const pods = ownObjects(client, 'v1', 'Pod')
  // it has a part that says so
  const known = await pods.catch(() => [])
  return [
    jsonPart('cluster/version.json', 'versions of this program, the cluster, its nodes', () => versionsOf(client)),
    jsonPart('cluster/server.json', 'version of the API server', () => client.request({ method: 'GET', path: '/version' })),
    jsonPart('cluster/nodes.json', 'nodes', async () => (await client.list({ apiVersion: 'v1', kind: 'Node' })).map(withoutImages)),
    ...ALL_RESOURCES.map((resource) => {
      const { group, plural, kind, doc } = resource
      return jsonPart(`${group}/${plural}.json`, doc, () => client.list({ apiVersion: apiVersionOf(resource), kind }))
    }),
    jsonPart('workloads/pods.json', 'pods of ours', () => pods),
    jsonPart('workloads/daemonsets.json', 'daemon sets of ours', () => ownObjects(client, 'apps/v1', 'DaemonSet')),
    jsonPart('workloads/deployments.json', 'deployments of ours', () => ownObjects(client, 'apps/v1', 'Deployment')),
    jsonPart('workloads/events.json', 'events of our namespaces and pods, and of nodes', async () =>
      ownEvents(await client.list(EVENTS), known),
    ),
    ...logParts(client, known, order),
  ]
}

async function versionsOf(client: ApiClient): Promise<object> {
  const { versions, failures } = await readVersions(client)
  return { ...versions, missing: failures.map(errorText) }
}

const EVENTS = { apiVersion: 'v1', kind: 'Event' } as const

function ownEvents(events: readonly ApiObject[], pods: readonly ApiObject[]): readonly ApiObject[] {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  const namespaces = new Set<unknown>(OWN_NAMESPACES)
  return events.filter(({ metadata, involvedObject: about }) => {
    if (namespaces.has(metadata.namespace) || !isObject(about)) return true
    const { kind, uid, apiVersion } = about
    const isOurKind = typeof apiVersion === 'string' && /(^|\.)netplane\.io\//.test(apiVersion)
    return kind === 'Node' || isOurKind || (typeof uid === 'string' && uids.has(uid))
  })
}

/** The names of what a node has in its store are most of it. */
function withoutImages(node: ApiObject): ApiObject {
  if (!isObject(node['status'])) return node
  return { ...node, status: { ...node['status'], images: undefined } }
}

function jsonPart(name: string, about: string, read: () => Promise<unknown>): Part {
  return { name, about, isClean: true, read: async () => `${JSON.stringify(redacted(await read()), undefined, 1)}\n` }
}
