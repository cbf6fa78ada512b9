// SPDX-License-Identifier: Apache-2.0
/** Asks a service as processes of the node do, or as a pod does. Layer: agent/proof. */
import { createSocket } from 'node:dgram'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '#lib/base/clock.ts'
import { formatAddr, isV4, tryParseAddr } from '#lib/base/ip.ts'
import { connects, CONNECT_MS, type LocalEnd } from '#lib/base/os/connects.ts'
import { answersName } from '#lib/base/os/name-server.ts'
import type { Family } from '#lib/model/service.ts'
import type { Ask, Place } from './asks.ts'

/** Makes a socket in a pod's network namespace, neither bound nor connected; returns its descriptor. `hopLimit`: of its
 * packets. */
export type PodSocket = (family: Family, protocol: 'TCP' | 'UDP', hopLimit?: number) => number

/** Where the flow table says that these packets of a client go; undefined: it has no such flow. */
export type EndpointOf = (flow: { readonly from: Place; readonly to: Place; readonly protocol: 'TCP' | 'UDP' }) => Place | undefined

export interface Answer {
  /** who has it, as the flow table says; undefined: it does not */
  readonly endpoint: Place | undefined
}

export interface AskOptions {
  readonly endpointOf: EndpointOf
  /** of the pod that asks; undefined: the node does */
  readonly socketOf: PodSocket | undefined
}

/** Of a datagram's packet: the node is the first hop, and does not send it on. */
const HOPS = 1
const LOOK_MS = 10

/** Undefined: none came in time. */
export async function answerOf(place: Place, how: Ask['how'], options: AskOptions): Promise<Answer | undefined> {
  if (how === 'datagram') return await datagramOf(place, options)
  const protocol = how === 'connect' ? 'TCP' : 'UDP'
  const descriptor = options.socketOf?.(familyOf(place), protocol)
  const local = await (how === 'connect' ? connects : answersName)(formatAddr(place.addr), place.port, descriptor)
  if (local === undefined) return undefined
  const from = placeOf(local)
  return { endpoint: from && options.endpointOf({ from, to: place, protocol }) }
}

/** An empty datagram of a pod ends at its node, after programs have judged it and chosen where it goes. Their entry in
 * the flow table is the answer: it says to which endpoint, and there is none where nothing has translated or allowed
 * it. */
async function datagramOf(place: Place, { endpointOf, socketOf }: AskOptions): Promise<Answer | undefined> {
  if (socketOf === undefined) return undefined
  const descriptor = socketOf(familyOf(place), 'UDP', HOPS)
  const socket = createSocket(isV4(place.addr) ? 'udp4' : 'udp6')
  // what is refused has no entry either
  socket.on('error', () => undefined)
  try {
    socket.bind({ fd: descriptor, exclusive: true })
    const refused = await new Promise<unknown>((resolve) => {
      socket.connect(place.port, formatAddr(place.addr), (error?: unknown) => {
        resolve(error)
      })
    })
    const from = refused === undefined ? placeOf(socket.address()) : undefined
    const look = (): Place | undefined => from && endpointOf({ from, to: place, protocol: 'UDP' })
    // an older flow from the same port says nothing of today
    if (from === undefined || look() !== undefined) return undefined
    socket.send(Buffer.alloc(0))
    return await seen(look)
  } finally {
    socket.close()
  }
}

/** In the time that an answer would have. */
async function seen(look: () => Place | undefined): Promise<Answer | undefined> {
  for (const until = systemClock.now() + CONNECT_MS; systemClock.now() < until; await setTimeout(LOOK_MS)) {
    const endpoint = look()
    if (endpoint !== undefined) return { endpoint }
  }
  return undefined
}

function familyOf({ addr }: Place): Family {
  return isV4(addr) ? 'IPv4' : 'IPv6'
}

/** Undefined: of one link alone, and of no flow to a service. */
function placeOf({ address, port }: LocalEnd): Place | undefined {
  const addr = tryParseAddr(address)
  return addr && { addr, port }
}
