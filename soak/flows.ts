// SPDX-License-Identifier: Apache-2.0
/** The traffic of a soak, what each stream is promised, and whether it was kept. Layer: soak (pure). */
import type { Load } from '../lab/traffic/load.ts'
import { endpointText, type Endpoint } from '../lab/tools/address.ts'
import type { RequestsResult, StreamResult } from '../lab/tools/results.ts'
import { addressOf, FAMILIES, PROTOS, type Proto } from '../testkit/lab/manifests.ts'
import { TestService } from '../testkit/lab/test-service.ts'
import { SERVICE } from './cluster.ts'

/** keeps: every message is answered, on one connection. moves: no silence of more than a second. control: as keeps,
 * without any service: what these lose is not the services' doing. */
type Kind = 'keeps' | 'moves' | 'control'

export interface Way {
  readonly from: string
  readonly to: Endpoint
  readonly kind: Kind
}

/** ms after which UDP flows are with another backend */
const MOVED_MS = 1000
/** Messages a second of each stream, new connections a second of each way. */
const [RATE, CONNECTIONS] = [25, 5]

const [calm, held, moving] = [service(SERVICE.calm), service(SERVICE.held), service(SERVICE.moving)]

/** By the place they start from, in which one process has them all. */
export const WAYS: readonly Way[] = byPlace([
  ...ways('keeps', ['shell-a', 'shell-b', 'node/b'], calm.everywhere),
  ...ways('keeps', ['client', 'far'], calm.onEvery('a')),
  ...ways('keeps', ['shell-a', 'node/c'], tcp(held.everywhere)),
  ...ways('keeps', ['client'], tcp(held.onEvery('b'))),
  ...ways('moves', ['shell-b', 'node/a'], udp(moving.everywhere)),
  ...ways('moves', ['client'], udp(moving.onEvery('c'))),
  ...ways('control', ['shell-a'], straight('b-2')),
  ...ways('control', ['shell-b'], straight('a-2')),
])

export const LOAD: Load = loadOf(WAYS, [
  ...ways('keeps', ['client'], tcp(calm.onEvery('c'))),
  ...ways('keeps', ['shell-b', 'node/a'], tcp(calm.everywhere)),
])

/** A stream on each way, and on each of `requested` new connections all the time. */
export function loadOf(all: readonly Way[], requested: readonly Way[]): Load {
  return {
    flows: [...new Set(all.map(({ from }) => from))].map((from) => ({
      from,
      to: all.filter((way) => way.from === from).map(({ to }) => to),
      rate: RATE,
    })),
    requests: requested.map(({ from, to }) => ({ from, to, rate: CONNECTIONS })),
  }
}

/** A promise that was not kept. */
export interface Loss {
  /** "shell-a to tcp:10.96.0.1:80: 3 of 900 lost" */
  readonly text: string
  /** ms since 1970, where it is known */
  readonly at: number | undefined
}

/** Of streams in the order of the ways. */
export function lossesIn(streams: readonly StreamResult[], all: readonly Way[]): Loss[] {
  const controls = streams.filter((_, at) => all[at]?.kind === 'control')
  const stall = Math.max(0, ...controls.map(({ longestGapMs }) => longestGapMs))
  return all.flatMap((way, at) => {
    const stream = streams[at]
    if (stream === undefined) return [{ text: `${wayText(way)}: there was no such stream`, at: undefined }]
    return way.kind === 'moves' ? silenceIn(way, stream, stall) : lossIn(way, stream)
  })
}

/** "slowest answer 812 ms, of the control 640": what was lost and sent again by TCP, or waited for a busy machine. */
export function slowestText(streams: readonly StreamResult[], all: readonly Way[]): string {
  const slowest = (kind: Kind): number =>
    Math.max(0, ...streams.flatMap(({ slowestMs }, at) => (all[at]?.kind === kind ? [slowestMs] : [])))
  return `slowest answer ${slowest('keeps')} ms, of the control ${slowest('control')}`
}

/** Of connections that were made one after the other, in the order of the load. */
export function refusalsIn(requests: readonly RequestsResult[], load: Load): Loss[] {
  return load.requests.flatMap(({ from, to }, at) => {
    const { ok = 0, refused = 0, reset = 0, timeouts = 0, errors = {}, firstFailedAt } = requests[at] ?? {}
    if (ok > 0 && refused + reset + timeouts + Object.keys(errors).length === 0) return []
    return [
      {
        text: `${from} to ${endpointText(to)}: ${JSON.stringify({ ok, refused, reset, timeouts, errors })}`,
        at: firstFailedAt ?? undefined,
      },
    ]
  })
}

function lossIn(way: Way, { sent, received, lost, reconnects, errors, firstLostAt }: StreamResult): Loss[] {
  if (sent > 0 && lost === 0 && reconnects === 0 && Object.keys(errors).length === 0) return []
  const text = `${wayText(way)}: ${JSON.stringify({ sent, received, lost, reconnects, errors })}`
  return [{ text, at: firstLostAt ?? undefined }]
}

function silenceIn(way: Way, { longestGapMs, longestGapAt, received }: StreamResult, stall: number): Loss[] {
  if (received > 0 && longestGapMs <= MOVED_MS + stall) return []
  const text = `${wayText(way)}: silent for ${longestGapMs} ms, the control for ${stall} ms at most`
  return [{ text, at: longestGapAt ?? undefined }]
}

function wayText({ from, to, kind }: Way): string {
  return `${from} to ${endpointText(to)} (${kind})`
}

export function ways(kind: Kind, places: readonly string[], endpoints: readonly Endpoint[]): Way[] {
  return places.flatMap((from) => endpoints.map((to) => ({ from, to, kind })))
}

export function byPlace(all: readonly Way[]): Way[] {
  const places = [...new Set(all.map(({ from }) => from))]
  return places.flatMap((place) => all.filter(({ from }) => from === place))
}

export function tcp(endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.filter(({ proto }) => proto === 'tcp')
}

function udp(endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.filter(({ proto }) => proto === 'udp')
}

/** Both families and protocols of a pod. */
export function straight(pod: string): Endpoint[] {
  return FAMILIES.flatMap((family) => PROTOS.map((proto: Proto) => ({ proto, address: addressOf(pod, family), port: 8080 })))
}

/** Its addresses and ports; nothing of it is written. */
export function service(index: number): TestService {
  return new TestService({ put: () => undefined, remove: () => undefined }, index)
}
