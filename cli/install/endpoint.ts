// SPDX-License-Identifier: Apache-2.0
/** `install endpoint`: the config map by which operator and agents find the API server. Layer: cli. */
import { dump } from 'js-yaml'
import { errorText } from '#lib/base/errors.ts'
import { hostPort } from '#lib/base/ip.ts'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { Provider } from '#lib/render/providers.ts'
import { renderEndpoint, renderNamespace } from '#lib/render/render.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { isLoopback, refusalOf } from './address.ts'
import { addressesOf, check, identityOf, type Checked } from './endpoint-check.ts'
import { detectedProvider, inhabitants, nodesOf, openCluster, type Cluster } from './cluster.ts'
import { InstallError } from './errors.ts'
import type { EndpointOrder } from './order.ts'
import { ROWS, type Candidate, type Row } from './rows.ts'

/** Of the fields of the map, in metadata.managedFields. */
const FIELD_MANAGER = 'netplanectl-install'

interface Chosen {
  readonly candidate: Candidate
  /** for people: what was found, and why it is trusted */
  readonly notes: readonly string[]
}

/** Throws InstallError when no address is fit to be there. */
export async function endpointCommand(order: EndpointOrder): Promise<CommandResult> {
  const { platform, namespace, apply, check: isChecked, json } = order
  await using cluster = await openCluster(order)
  const nodes = await nodesOf(cluster)
  const provider = platform ?? (await detectedProvider(cluster, nodes))
  const said = `platform: ${provider} (${platform === undefined ? 'found by version and nodes' : '--platform'}), ${ROWS[provider].platform}`
  const { candidate, notes } = await choose(cluster, { provider, nodes, isChecked, namespace })
  const object = renderEndpoint(namespace, { host: candidate.host, port: String(candidate.port) })
  const told = [
    said,
    `address: ${hostPort(candidate.host, candidate.port)}, ${candidate.by}`,
    ...candidate.warnings.map(asWarning),
    ...notes,
  ]
  const isThere = (await getOrNone(cluster.client, { apiVersion: 'v1', kind: 'Namespace', name: namespace })) !== undefined
  if (apply) {
    const done = await applied(cluster, { object, namespace, isThere })
    return { text: linesText(done), warnings: linesText(told), exitCode: 0 }
  }
  const warnings = [...told, ...(isThere ? [] : [asWarning(`namespace ${namespace} is not there: --apply makes it too`)])]
  return { text: textOf(object, json), warnings: linesText(warnings), exitCode: 0 }
}

interface Choice {
  readonly provider: Provider
  readonly nodes: readonly ApiObject[]
  readonly isChecked: boolean
  /** of the config map */
  readonly namespace: string
}

/** The first candidate of the row that nothing speaks against. */
async function choose(cluster: Cluster, { provider, nodes, isChecked, namespace }: Choice): Promise<Chosen> {
  const row = ROWS[provider]
  const objects = await Promise.all(row.reads.map((named) => getOrNone(cluster.client, named)))
  const against: string[] = []
  for (const candidate of row.find({ nodes, objects, server: cluster.server, namespace })) {
    const checked = await judged(cluster, { candidate, row, nodes, isChecked })
    const { host, port, by } = candidate
    if (checked.state !== 'wrong') return { candidate, notes: [...against.map(asWarning), ...checked.notes] }
    against.push(...checked.notes.map((note) => `${hostPort(host, port)}, ${by}: ${note}`))
  }
  throw new InstallError(against.join('\n'))
}

interface Judging extends Omit<Choice, 'provider' | 'namespace'> {
  readonly candidate: Candidate
  readonly row: Row
}

async function judged(cluster: Cluster, { candidate, row, nodes, isChecked }: Judging): Promise<Checked> {
  const { host } = candidate
  const { addresses, why } = isChecked ? await meaningHere(host) : { addresses: [], why: '--no-check' }
  const reason = row.perNode === true ? undefined : await refusal(cluster, { host, addresses, nodes })
  if (reason !== undefined) return { state: 'wrong', notes: [reason] }
  if (why !== undefined) return { state: 'unknown', notes: [asWarning(`not checked: ${why}`)] }
  const identity = await identityOf(cluster)
  const { state, notes } = await check(candidate, { addresses, identity, server: cluster.server, perNode: row.perNode === true })
  const prefix = { right: 'checked: ', wrong: '', unknown: asWarning('not checked: ') }[state]
  return { state, notes: notes.map((note) => `${prefix}${note}`) }
}

async function meaningHere(host: string): Promise<{ readonly addresses: readonly string[]; readonly why?: string }> {
  try {
    return { addresses: await addressesOf(host) }
  } catch (thrown) {
    return { addresses: [], why: `${host} is no name here: ${errorText(thrown)}` }
  }
}

interface Meaning {
  readonly host: string
  /** that the host has here */
  readonly addresses: readonly string[]
  readonly nodes: readonly ApiObject[]
}

/** A name may be that of one node, or of a service, too; one with several addresses is of no single machine. */
async function refusal(cluster: Cluster, { host, addresses, nodes }: Meaning): Promise<string | undefined> {
  const [only] = addresses.length === 1 ? addresses.filter((address) => address !== host && !isLoopback(address)) : []
  const world = await inhabitants(cluster, nodes, [host, ...(only === undefined ? [] : [only])])
  const reason = refusalOf(host, world)
  if (reason !== undefined || only === undefined) return reason
  const behind = refusalOf(only, world)
  return behind === undefined ? undefined : `its only address ${only} ${behind}`
}

interface Applying {
  readonly object: ApiObject
  readonly namespace: string
  readonly isThere: boolean
}

/** Fields that another client has set stay its own: then the server refuses, and names it. */
async function applied({ client }: Cluster, { object, namespace, isThere }: Applying): Promise<readonly string[]> {
  const options = { fieldManager: FIELD_MANAGER, force: false }
  if (!isThere) await client.apply(renderNamespace(namespace), options)
  await client.apply(object, options)
  return [...(isThere ? [] : [`namespace ${namespace} made`]), `config map ${namespace}/${object.metadata.name} applied`]
}

function textOf(object: ApiObject, json: boolean): string {
  return json ? `${JSON.stringify(object, undefined, 1)}\n` : dump(object, { lineWidth: 140, noRefs: true })
}

function asWarning(text: string): string {
  return `warning: ${text}`
}
