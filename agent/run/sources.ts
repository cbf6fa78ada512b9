// SPDX-License-Identifier: Apache-2.0
/** Where the agent's objects come from: a directory of manifests, or the API server. Layer: agent. */
import type { Rejected } from '#lib/base/result.ts'
import { systemClock } from '#lib/base/clock.ts'
import { isPort, tryParseAddr, type Addr, type Port } from '#lib/base/ip.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiSource } from '#lib/api/source.ts'
import type { Log } from '#lib/obs/log.ts'
import type { LastGoodFile } from '#lib/store/last-good.ts'
import type { Source } from '#lib/store/source.ts'

export type Origin =
  | { readonly kind: 'directory'; readonly directory: string }
  | { readonly kind: 'kubeconfig'; readonly file: string }
  /** as the service account of the pod that this is */
  | { readonly kind: 'in-cluster' }

export interface AgentSource extends Source {
  /** where each object is that came from here */
  placesOf(fields: readonly Rejected[]): readonly (string | undefined)[]
  /** what becomes of each kind, where they come one by one */
  facts?(): ReturnType<ApiSource['facts']>
  /** What was heard may not be all: everything is asked for again, without waiting for a backoff. Never rejects. */
  refresh(reason: string): Promise<void> | void
  /** of this machine, by which the server is reached at present */
  readonly localAddress?: string | undefined
  /** why the server is asked at the address of its service; undefined: it is not */
  readonly byService?: string | undefined
  /** for what else is asked of the server */
  readonly client?: ApiClient
  /** what this node must reach whatever policies and services say, or it hears of no others */
  servers?(): readonly ServerPlace[]
}

/** Where an API server is asked. */
export interface ServerPlace {
  readonly addr: Addr
  readonly port: Port
}

export interface SourceOptions {
  /** whose agent asks */
  readonly node: string
  readonly lastGood?: LastGoodFile
  /** `servers` may be others by now */
  readonly onServers?: () => void
  /** before each connection to an API server; must not throw */
  readonly clearWay?: (place: ServerPlace) => void
  readonly log?: Log
}

/** Each is loaded when it is wanted. Throws ConfigError when there can be none. */
export async function openSource(origin: Origin, options: SourceOptions): Promise<AgentSource> {
  const { node, lastGood, onServers, clearWay, log } = options
  const kept = lastGood === undefined ? {} : { lastGood }
  if (origin.kind === 'directory') {
    const { DirectorySource } = await import('#lib/manifests/source.ts')
    return new DirectorySource({ directory: origin.directory, clock: systemClock, ...kept })
  }
  const { ApiSource } = await import('#lib/api/source.ts')
  const server = await serverOf(origin)
  const { byService } = server
  if (byService !== undefined) log?.warn({ reason: byService }, 'api-server-path.by-service')
  const onCredentials = (state: string, reason: string): void => {
    log?.warn({ reason }, `api.credentials-${state}`)
  }
  const source = new ApiSource({
    server,
    node,
    onAddresses: onServers,
    beforeConnect: clearWay && clearing(clearWay),
    onCredentials,
    ...kept,
  })
  return {
    name: source.name,
    run: (sink, signal) => source.run(sink, signal),
    placesOf: (fields) => source.placesOf(fields),
    refresh: (reason) => source.refresh(reason),
    get localAddress() {
      return source.client.transport.connected?.localAddress
    },
    byService,
    client: source.client,
    facts: () => source.facts(),
    servers: () => {
      const { addresses, port } = source.servers()
      return addresses.map((addr) => ({ addr, port }))
    },
  }
}

async function serverOf(origin: Exclude<Origin, { readonly kind: 'directory' }>) {
  if (origin.kind === 'in-cluster') {
    const { inCluster } = await import('#lib/api/connection/in-cluster.ts')
    return inCluster()
  }
  const { fromKubeconfig } = await import('#lib/api/connection/kubeconfig.ts')
  return fromKubeconfig(origin.file)
}

/** Addresses that are none of a service's pass. */
function clearing(clearWay: (place: ServerPlace) => void): (address: string, port: number) => void {
  return (address, port) => {
    const addr = tryParseAddr(address)
    if (addr !== undefined && isPort(port)) clearWay({ addr, port })
  }
}
