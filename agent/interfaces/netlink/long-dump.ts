// SPDX-License-Identifier: Apache-2.0
/** A list of the kernel's that may be long, read piece by piece: other tasks have their turn meanwhile.
 * Layer: agent/interfaces. */
import { errorCode } from '#lib/base/errors.ts'
import { throwOnError, type NetlinkRequest, type NetlinkTransport } from './exchange.ts'
import { decodeMessages, encodeMessage, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, type NetlinkMessage } from './message.ts'

/** of its only request */
const SEQ = 1

export interface LongDump {
  readonly request: NetlinkRequest
  readonly take: (message: NetlinkMessage) => void
  /** ends it early */
  readonly signal: AbortSignal
}

/** By a socket that does nothing else, and is closed in the end. True: that was all of it. Throws NetlinkError. */
export async function dumpLong(socket: NetlinkTransport, { request, take, signal }: LongDump): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const give = (message: NetlinkMessage): void => {
    if (message.seq !== SEQ) return
    if (message.type !== NLMSG_DONE && message.type !== NLMSG_ERROR) {
      take(message)
      return
    }
    throwOnError(request, message)
    resolve(true)
  }
  const onAbort = (): void => {
    resolve(false)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const { type, payload } = request
    socket.send(encodeMessage({ type, flags: NLM_F_REQUEST | NLM_F_DUMP, seq: SEQ, payload }))
    socket.onReadable(() => {
      try {
        for (const message of receivePiece(socket)) give(message)
      } catch (thrown) {
        reject(thrown)
      }
    })
    return await promise
  } finally {
    signal.removeEventListener('abort', onAbort)
    socket.onReadable(undefined)
    socket.close()
  }
}

/** One in each turn of the event loop. */
function receivePiece(socket: NetlinkTransport): NetlinkMessage[] {
  try {
    const datagram = socket.receive()
    return datagram === undefined ? [] : decodeMessages(datagram)
  } catch (thrown) {
    // a piece was lost: the dump goes on behind it
    if (errorCode(thrown) === 'ENOBUFS') return []
    throw thrown
  }
}
