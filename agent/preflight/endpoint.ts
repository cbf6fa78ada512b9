// SPDX-License-Identifier: Apache-2.0
/** Whether the API server answers this node at the endpoint that is given: by every address of its name, as one
 * cluster. Layer: agent. */
import { isIP } from 'node:net'
import { ApiClient } from '#lib/api/client.ts'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { systemResolve, type Resolve } from '#lib/api/connection/addresses.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { ApiError, isRefused } from '#lib/api/errors.ts'
import { clusterUid, serverVersion } from '#lib/api/identity.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { formatAddr, hostPort, tryParseAddr, unmapped } from '#lib/base/ip.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import type { EndpointPlace, PreflightOptions } from './options.ts'
import type { Probed } from './probed.ts'

/** Of one address, and of the resolver. Two rounds of both fit into what a preflight may take. */
const ANSWER_MS = 4000
/** A balancer has a few; all are asked at once. */
const MOST_ADDRESSES = 16

export interface EndpointOptions extends Pick<PreflightOptions, 'serviceAddresses' | 'account'> {
  readonly endpoint: EndpointPlace
  readonly resolve?: Resolve
}

/** Rejects when there is nothing to ask with. */
export async function probeEndpoint(options: EndpointOptions): Promise<Probed> {
  const { endpoint, serviceAddresses } = options
  const { host } = endpoint
  const server = serverOf(options)
  await Promise.all([server.tls(), server.headers()])
  if (/^\[.*\]$/.test(host)) return { findings: [finding('endpoint-brackets', host)], facts: {} }
  const answers = new Map<string, Answer>()
  // the second time the name may have other addresses, or not resolve
  for (let round = 1; round <= 2; round++) {
    const found = await resolved(options)
    if ('findings' in found) return { findings: found.findings, facts: {} }
    const service = found.addresses.find((address) => serviceAddresses.some((one) => isSame(one, address)))
    if (service !== undefined) return { findings: [finding('endpoint-service', host, service)], facts: {} }
    const unknown = found.addresses.filter((address) => !answers.has(address)).slice(0, MOST_ADDRESSES)
    const asked = await Promise.all(unknown.map(async (address) => [address, await ask(address, options)] as const))
    for (const [address, answer] of asked) answers.set(address, answer)
  }
  return judge(endpoint, answers)
}

type Answer = { readonly cluster: string; readonly version: string } | { readonly finding: Finding }

/** One finding an address; those of another cluster than the first are told by their own. */
function judge({ host, port }: EndpointPlace, answers: ReadonlyMap<string, Answer>): Probed {
  const ordered = [...answers].sort(([a], [b]) => (a < b ? -1 : 1))
  const good = ordered.flatMap(([address, answer]) => ('cluster' in answer ? [{ address, ...answer }] : []))
  const [first] = good
  const bad = ordered.flatMap(([, answer]) => ('finding' in answer ? [answer.finding] : []))
  const others = good.filter(({ cluster }) => cluster !== first?.cluster)
  return {
    findings: [
      ...bad,
      ...others.map(({ address, cluster }) => finding('endpoint-other-cluster', hostPort(address, port), cluster, first?.cluster ?? '')),
    ],
    facts: {
      ...(first === undefined ? {} : { cluster: first.cluster, server: first.version }),
      // whose they are the operator knows
      ...(isIP(host) > 0
        ? {}
        : {
            addresses: ordered
              .map(([address]) => address)
              .slice(0, MOST_ADDRESSES)
              .join(','),
          }),
    },
  }
}

async function resolved({
  endpoint: { host },
  resolve = systemResolve,
}: EndpointOptions): Promise<{ readonly addresses: readonly string[] } | { readonly findings: readonly Finding[] }> {
  if (isIP(host) > 0) return { addresses: [unmapped(host)] }
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Error(`no answer in ${ANSWER_MS} ms`))
  }, ANSWER_MS)
  try {
    const addresses = await Promise.race([resolve(host), late.promise])
    if (addresses.length === 0) return { findings: [finding('endpoint-unresolved', host, 'it has no address')] }
    return { addresses: [...new Set(addresses.map(unmapped))] }
  } catch (thrown) {
    return { findings: [finding('endpoint-unresolved', host, errorText(thrown))] }
  } finally {
    clearTimeout(timer)
  }
}

async function ask(address: string, options: EndpointOptions): Promise<Answer> {
  const signal = AbortSignal.timeout(ANSWER_MS)
  await using client = new ApiClient({ server: serverOf(options), resolve: () => Promise.resolve([address]) })
  try {
    return { cluster: await clusterUid(client, { signal }), version: await serverVersion(client, { signal }) }
  } catch (thrown) {
    return { finding: failureOf(hostPort(address, options.endpoint.port), thrown, signal) }
  }
}

function serverOf({ endpoint, account }: EndpointOptions): ApiServer {
  return inCluster({ env: { CLUSTER_SERVICE_HOST: endpoint.host, CLUSTER_SERVICE_PORT: String(endpoint.port) }, account })
}

const BAD_CERTIFICATE = /CERT|ISSUER|SIGNATURE|CHAIN|CRL/
const NO_WAY = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EACCES', 'EPERM'])
const TOO_LATE = new Set(['ETIMEDOUT', 'ERR_SOCKET_CONNECTION_TIMEOUT'])

function failureOf(place: string, thrown: unknown, signal: AbortSignal): Finding {
  if (isRefused(thrown, 'Unauthorized')) return finding('endpoint-token', place)
  if (thrown instanceof ApiError) return finding('endpoint-answer', place, thrown.message)
  const code = codeBelow(thrown)
  if (code === 'ECONNREFUSED') return finding('endpoint-refused', place)
  if (code !== undefined && BAD_CERTIFICATE.test(code)) return finding('endpoint-certificate', place, reasonBelow(thrown))
  if (code !== undefined && NO_WAY.has(code)) return finding('endpoint-unreachable', place, reasonBelow(thrown))
  if (signal.aborted || (code !== undefined && TOO_LATE.has(code))) return finding('endpoint-timeout', place, ANSWER_MS)
  return finding('endpoint-answer', place, reasonBelow(thrown))
}

/** The system's own, of what lies beneath our errors. */
function codeBelow(thrown: unknown): string | undefined {
  const deepest = rootOf(thrown)
  return deepest === undefined ? undefined : errorCode(deepest)
}

function reasonBelow(thrown: unknown): string {
  return errorText(rootOf(thrown) ?? thrown)
}

function rootOf(thrown: unknown): unknown {
  let at = thrown
  while (at instanceof Error && at.cause !== undefined) at = at.cause
  return at
}

function isSame(text: string, address: string): boolean {
  const [one, other] = [tryParseAddr(text), tryParseAddr(address)]
  return one !== undefined && other !== undefined && formatAddr(one) === formatAddr(other)
}
