// SPDX-License-Identifier: Apache-2.0
/** `install dns`: a cloud's name server for the operator, which has to find the API server by its name. Layer: cli. */
import { isObject } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { PLATFORMS } from '#lib/render/providers.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { detectedProvider, nodesOf, openCluster } from './cluster.ts'
import { InstallError } from './errors.ts'
import type { DnsOrder } from './order.ts'

/** One of its own: an apply of the operator's manifest, by whichever way, takes from a Deployment only what the one
 * that applies it has set before. */
const FIELD_MANAGER = 'netplanectl-dns'

/** Throws InstallError when there is no operator to patch. */
export async function dnsCommand(order: DnsOrder): Promise<CommandResult> {
  const { platform, namespace, apply, json } = order
  await using cluster = await openCluster(order)
  const provider = platform ?? (await detectedProvider(cluster, await nodesOf(cluster)))
  const { nameserver } = PLATFORMS[provider]
  if (nameserver === undefined)
    return { text: '', warnings: `${provider} needs no name server but the nodes' own: nothing to do\n`, exitCode: 0 }
  const patch = patchWith(nameserver)
  const command = `kubectl --namespace ${namespace} patch deployment ${OPERATOR} --type merge --patch '${JSON.stringify(patch)}'`
  if (!apply) {
    const warnings = [
      `platform: ${provider}`,
      `after the node's own name servers, as far as these are less than three; by kubectl:`,
      command,
    ]
    return { text: `${JSON.stringify(patch, undefined, json ? 1 : undefined)}\n`, warnings: linesText(warnings), exitCode: 0 }
  }
  const named: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name: OPERATOR }
  const deployment = await getOrNone(cluster.client, named)
  if (deployment === undefined)
    throw new InstallError(`there is no Deployment ${namespace}/${OPERATOR}: apply deploy/operator/netplane-operator.yaml first`)
  if (nameserversOf(deployment).includes(nameserver))
    return { text: `deployment ${namespace}/${OPERATOR} has name server ${nameserver} already\n`, warnings: '', exitCode: 0 }
  const { apiVersion, kind } = named
  const partial = asApiObject({ apiVersion, kind, metadata: { namespace, name: OPERATOR }, ...patch })
  await cluster.client.apply(partial, { fieldManager: FIELD_MANAGER, force: false })
  return { text: `deployment ${namespace}/${OPERATOR} has name server ${nameserver}\n`, warnings: '', exitCode: 0 }
}

function patchWith(nameserver: string): { readonly spec: object } {
  return { spec: { template: { spec: { dnsConfig: { nameservers: [nameserver] } } } } }
}

function nameserversOf(deployment: ApiObject): readonly unknown[] {
  const servers = ['spec', 'template', 'spec', 'dnsConfig', 'nameservers'].reduce<unknown>(
    (value, key) => (isObject(value) ? value[key] : undefined),
    deployment,
  )
  return Array.isArray(servers) ? servers : []
}
