// SPDX-License-Identifier: Apache-2.0
/** Where a program that acts for the cluster asks the API server: at the endpoint of the config map, and where none
 * answers there at the service's address. Layer: lib/control. */
import { ConfigError, errorText } from '../base/errors.ts'
import type { Clock } from '../base/clock.ts'
import { ApiClient } from '../api/client.ts'
import { inCluster } from '../api/connection/in-cluster.ts'
import { fromKubeconfig } from '../api/connection/kubeconfig.ts'
import { changingServer, originOf, type ApiServer } from '../api/connection/server.ts'
import { ApiError, UnreachableError } from '../api/errors.ts'

export interface FindServer {
  readonly clock: Clock
  /** when none has answered for so long, the program is to end; without it none is given up */
  readonly giveUpMs?: number
  /** why one is passed over */
  readonly tell: (text: string) => void
  readonly signal: AbortSignal
}

export interface FoundServer {
  /** asked later as well: another is chosen where it no longer answers */
  readonly server: ApiServer
  /** of a pod alone */
  readonly pod?: PodServers
}

export interface PodServers {
  /** all that it may be asked at */
  readonly all: readonly ApiServer[]
  /** the same account's at another endpoint */
  readonly at: (endpoint: { readonly host: string; readonly port: string }) => ApiServer
}

const AGAIN_MS = 1000
const ANSWER_MS = 5000
/** A pod has the config map as it was when its container was started: one that ends gets it anew. */
export const ENDPOINT_PATIENCE_MS = 30_000
/** After this a connection that says nothing is given up. Others of the machine may be slow for some seconds. */
const DROP_MS = 10_000
/** It takes some of them to find that neither server answers. */
const RUNNING_PATIENCE_MS = 40_000

/** Resolves once one answers. Throws ConfigError when there is none at all, UnreachableError when it gives up. */
export async function findServer(kubeconfig: string | undefined, options: FindServer): Promise<FoundServer> {
  if (kubeconfig !== undefined) return { server: fromKubeconfig(kubeconfig) }
  const { env } = process
  const all = serversOfPod(env, options.tell)
  const first = await firstAnswering(all, { ...options, ask: askVersion })
  const at: PodServers['at'] = ({ host, port }) => inCluster({ env: { ...env, CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port } })
  return { server: chosenServer(all, { first, tell: options.tell }), pod: { all, at } }
}

type Ask = (server: ApiServer, signal?: AbortSignal) => Promise<void>

/** Before each connection that one is chosen which answers, in their order; where none does it stays. */
export function chosenServer(
  servers: readonly ApiServer[],
  { first, tell, ask = askVersion }: Pick<FindServer, 'tell'> & { readonly first: ApiServer; readonly ask?: Ask },
): ApiServer {
  if (servers.length < 2) return first
  let now = first
  const renew = async (): Promise<void> => {
    for (const server of servers) {
      const why = await askedOnce(server, ask)
      if (why === undefined) {
        now = server
        return
      }
      tell(why)
    }
  }
  return changingServer(() => now, renew)
}

/** What is done while no server answers: of a pod another connection, and in the end another start. `ms`: since the
 * last answer. Rejects with UnreachableError when it gives up. */
export function whileSilent(
  { pod }: FoundServer,
  { transport }: { readonly transport: Pick<ApiClient['transport'], 'origin' | 'drop'> },
): (ms: number) => Promise<void> {
  return async (ms) => {
    if (pod === undefined || ms < DROP_MS) return
    if (ms >= RUNNING_PATIENCE_MS) throw new UnreachableError(givenUp(pod.all, RUNNING_PATIENCE_MS))
    await transport.drop(new UnreachableError(`${transport.origin} says nothing`))
  }
}

/** The endpoint that the config map had when the pod started may be wrong by then, and it is the operator that says
 * so. The service's address is served by us as well, and agents keep the endpoint that they have. */
export function serversOfPod(env: Readonly<Record<string, string | undefined>>, tell: FindServer['tell']): readonly ApiServer[] {
  const servers = [env, { ...env, CLUSTER_SERVICE_HOST: '' }].flatMap((form) => {
    try {
      return [inCluster({ env: form })]
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown
      tell(thrown.message)
      return []
    }
  })
  const [first, second] = servers
  if (first === undefined) return [inCluster({ env })]
  // of two, the map had the first: it says nothing of the second that there was no map
  return second === undefined || originOf(first) === originOf(second) ? [first] : [first, { ...second, byService: undefined }]
}

/** Asks one after the other, again and again. */
export async function firstAnswering(
  servers: readonly ApiServer[],
  { clock, giveUpMs = Infinity, tell, signal, ask }: FindServer & { readonly ask: Ask },
): Promise<ApiServer> {
  const end = clock.now() + giveUpMs
  for (;;) {
    for (const server of servers) {
      const why = await askedOnce(server, ask, signal)
      if (why === undefined) return server
      tell(why)
    }
    if (clock.now() >= end) throw new UnreachableError(givenUp(servers, giveUpMs))
    await clock.sleep(AGAIN_MS, signal)
  }
}

function givenUp(servers: readonly ApiServer[], giveUpMs: number): string {
  const asked = servers.map(originOf).join(' and ')
  const remedy = "put right the config map cluster-services-endpoint of this pod's namespace, which is read when the container starts again"
  return `no API server answers at ${asked} for ${giveUpMs / 1000} s: ${remedy}`
}

/** Why it does not answer; undefined: it does. */
export async function askedOnce(server: ApiServer, ask: Ask = askVersion, signal?: AbortSignal): Promise<string | undefined> {
  try {
    await ask(server, signal)
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
    return `${originOf(server)}: ${errorText(thrown)}`
  }
}

async function askVersion(server: ApiServer, signal?: AbortSignal): Promise<void> {
  await using client = new ApiClient({ server })
  await client.request({ method: 'GET', path: '/version', ...(signal === undefined ? {} : { signal }), timeoutMs: ANSWER_MS })
}
