// SPDX-License-Identifier: Apache-2.0
/** Whether an address is this cluster's API server, as its agents would see it from here. Layer: cli. */
import { isIP } from 'node:net'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import { ApiClient } from '#lib/api/client.ts'
import { systemResolve, type Resolve } from '#lib/api/connection/addresses.ts'
import { clusterUid, serverVersion } from '#lib/api/identity.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import type { Named } from '#lib/api/resource.ts'
import type { Cluster } from './cluster.ts'
import { isLoopback } from './address.ts'
import type { Candidate, Row } from './rows.ts'

/** What is the same through every way to a cluster. */
export interface Identity {
  /** of namespace kube-system */
  readonly uid: string
  readonly version: string
  /** certificates of the authority that pods know; undefined: that of the kubeconfig */
  readonly authority: string | undefined
}

export interface Checked {
  /** wrong: it answers, and is not what it should be; unknown: nothing answers from here, which nodes may reach */
  readonly state: 'right' | 'wrong' | 'unknown'
  readonly notes: readonly string[]
}

/** The controller manager puts it into each namespace, and the kubelet into each pod. */
const AUTHORITY: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kube-root-ca.crt' }
const PATIENCE_MS = 10_000
/** No machine has answered. A refused connection is an answer: the machine is there, and no server at that port. */
const UNREACHED = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'ETIMEDOUT', 'ENETDOWN', 'EADDRNOTAVAIL'])

export async function identityOf({ client }: Cluster): Promise<Identity> {
  const data = (await getOrNone(client, AUTHORITY))?.['data']
  const authority: unknown = isObject(data) ? data['ca.crt'] : undefined
  const [uid, version] = [await clusterUid(client), await serverVersion(client)]
  return { uid, version, authority: typeof authority === 'string' ? authority : undefined }
}

/** What a host means on this machine; an address means itself. Rejects when there is no such name here. */
export async function addressesOf(host: string, resolve: Resolve = systemResolve): Promise<readonly string[]> {
  return isIP(host) > 0 ? [host] : [...new Set(await resolve(host))]
}

/** Each of the addresses: agents try one after the other. */
export async function check(
  candidate: Candidate,
  {
    addresses,
    identity,
    server,
    perNode = false,
  }: { readonly addresses: readonly string[]; readonly identity: Identity; readonly server: ApiServer } & Pick<Row, 'perNode'>,
): Promise<Checked> {
  const here = addresses.filter((address) => !perNode && isLoopback(address))
  if (here.length > 0) return { state: 'unknown', notes: [`${candidate.host} is this machine (${here.join(', ')}), and others elsewhere`] }
  const all = await Promise.all(addresses.map((address) => checkOne(candidate, { address, identity, server })))
  const state = (['wrong', 'right'] as const).find((one) => all.some((checked) => checked.state === one)) ?? 'unknown'
  return { state, notes: all.flatMap(({ notes }) => notes) }
}

async function checkOne(
  { host, port }: Candidate,
  { address, identity, server }: { readonly address: string; readonly identity: Identity; readonly server: ApiServer },
): Promise<Checked> {
  const direct: ApiServer = {
    protocol: 'https:',
    host,
    port,
    prefix: '',
    tls: async () => {
      const tls = await server.tls()
      return { ...tls, ca: identity.authority ?? tls.ca }
    },
    headers: () => server.headers(),
  }
  await using client = new ApiClient({ server: direct, resolve: () => Promise.resolve([address]) })
  const at = address === host ? '' : `${address}: `
  try {
    const uid = await clusterUid(client, { signal: AbortSignal.timeout(PATIENCE_MS) })
    if (uid !== identity.uid)
      return { state: 'wrong', notes: [`${at}it is another cluster: UID ${uid} of namespace kube-system, here ${identity.uid}`] }
    const version = await serverVersion(client)
    const other = version === identity.version ? '' : `, while the kubeconfig's server is ${identity.version}`
    return { state: 'right', notes: [`${at}answers with the cluster's authority, as this cluster, ${version}${other}`] }
  } catch (thrown) {
    if (!isUnreached(thrown)) return { state: 'wrong', notes: [`${at}${errorText(thrown)}`] }
    return { state: 'unknown', notes: [`${at}nothing answers here: ${errorText(thrown)}`] }
  }
}

/** By the innermost cause. */
function isUnreached(thrown: unknown): boolean {
  if (thrown instanceof Error && thrown.cause !== undefined) return isUnreached(thrown.cause)
  const { code, name } = isObject(thrown) ? thrown : {}
  return name === 'TimeoutError' || (typeof code === 'string' && UNREACHED.has(code))
}
