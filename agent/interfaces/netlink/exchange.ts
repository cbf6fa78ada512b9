// SPDX-License-Identifier: Apache-2.0
/** Request and answer over a netlink socket, waiting for the kernel. Layer: agent/interfaces. */
import { errorCode, NetlinkError } from '#lib/base/errors.ts'
import {
  decodeError,
  decodeMessages,
  encodeMessage,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTERRUPTED,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  type NetlinkMessage,
} from './message.ts'

export const NETLINK_ROUTE = 0

/** What we need of the addon's NetlinkSocket. */
export interface NetlinkTransport {
  /** this socket's port id: answers carry it; events carry that of the socket that caused them */
  readonly port: number
  send(bytes: Uint8Array): void
  receive(): Buffer | undefined
  receiveWait(ms: number): Buffer | undefined
  onReadable(callback: (() => void) | undefined): void
  close(): void
}

export interface NetlinkRequest {
  /** for errors: "add route 10.1.0.0/24" */
  readonly what: string
  readonly type: number
  readonly flags?: number
  readonly payload: Uint8Array
}

/** rtnetlink answers within the call that sends, so this only ends waits that can have no end. */
const PATIENCE_MS = 5000
/** How often a dump that the kernel calls inconsistent is asked for again before it is taken as it is. */
const DUMP_ATTEMPTS = 5

/** A socket that loses something so often without giving anything has a buffer that is too small for one piece of a
 * dump. */
const MOST_OVERRUNS = 100

/** One exchange at a time over one socket. `stray` gets messages that belong to no request: events of the groups
 * joined. */
export class NetlinkExchange {
  readonly #socket: NetlinkTransport
  readonly #stray: (message: NetlinkMessage) => void
  #seq = 0
  #overruns = 0

  constructor(socket: NetlinkTransport, stray: (message: NetlinkMessage) => void = () => undefined) {
    this.#socket = socket
    this.#stray = stray
  }

  /** Throws away what has arrived so far. */
  discard(): void {
    for (let received: Buffer | 'overrun' | undefined = 'overrun'; received !== undefined;)
      received = this.#take(() => this.#socket.receive())
  }

  /** Sends a change or a question, whose answer is given to `take`; throws NetlinkError with the kernel's errno and
   * words when it is refused. */
  request(request: NetlinkRequest, take: (message: NetlinkMessage) => void = () => undefined): void {
    const seq = this.#send(request, NLM_F_REQUEST | NLM_F_ACK | (request.flags ?? 0))
    for (;;) {
      const messages = this.#receive(request)
      if (messages === 'overrun') continue
      for (const message of messages) {
        if (!this.#answers(message, seq)) this.#stray(message)
        else if (message.type === NLMSG_ERROR) {
          throwOnError(request, message)
          return
        } else take(message)
      }
    }
  }

  /** Everything the kernel lists, each message given to `take` as it comes. Returns false when the list may be
   * inconsistent, or when events were lost meanwhile: the dump itself goes on then, and a second one would be
   * refused. */
  dumpOnce(request: NetlinkRequest, take: (message: NetlinkMessage) => void): boolean {
    const seq = this.#send(request, NLM_F_REQUEST | NLM_F_DUMP)
    let consistent = true
    for (;;) {
      const messages = this.#receive(request)
      if (messages === 'overrun') {
        consistent = false
        continue
      }
      for (const message of messages) {
        if (!this.#answers(message, seq)) {
          this.#stray(message)
          continue
        }
        if ((message.flags & NLM_F_DUMP_INTERRUPTED) !== 0) consistent = false
        if (message.type === NLMSG_DONE || message.type === NLMSG_ERROR) {
          throwOnError(request, message)
          return consistent
        }
        take(message)
      }
    }
  }

  /** A consistent list; asks again when something changed under the kernel's hands. */
  dump(request: NetlinkRequest): NetlinkMessage[] {
    for (let attempt = 1; ; attempt++) {
      const messages: NetlinkMessage[] = []
      if (this.dumpOnce(request, (message) => messages.push(message)) || attempt >= DUMP_ATTEMPTS) return messages
    }
  }

  #send(request: NetlinkRequest, flags: number): number {
    this.#seq = (this.#seq % 0x7fffffff) + 1
    this.#socket.send(encodeMessage({ type: request.type, flags, seq: this.#seq, payload: request.payload }))
    return this.#seq
  }

  #answers(message: NetlinkMessage, seq: number): boolean {
    return message.seq === seq && message.port === this.#socket.port
  }

  #receive(request: NetlinkRequest): NetlinkMessage[] | 'overrun' {
    const datagram = this.#take(() => this.#socket.receiveWait(PATIENCE_MS))
    if (datagram === undefined) throw new NetlinkError(request.what, `no answer within ${PATIENCE_MS} ms`)
    return datagram === 'overrun' ? datagram : decodeMessages(datagram)
  }

  #take(receive: () => Buffer | undefined): Buffer | 'overrun' | undefined {
    try {
      const datagram = receive()
      this.#overruns = 0
      return datagram
    } catch (thrown) {
      if (errorCode(thrown) === 'ENOBUFS' && ++this.#overruns < MOST_OVERRUNS) return 'overrun'
      throw thrown
    }
  }
}

/** Of a message that ends a request; throws NetlinkError. */
export function throwOnError(request: NetlinkRequest, message: NetlinkMessage): void {
  const { errno, text } = decodeError(message)
  if (errno !== 0) throw new NetlinkError(request.what, text ?? errnoText(errno), errno)
}

function errnoText(errno: number): string {
  switch (errno) {
    case 1:
      return 'not permitted'
    case 3:
      return 'no such entry'
    case 17:
      return 'already there'
    case 19:
      return 'no such device'
    case 100:
      return 'the device is down'
    case 101:
      return 'the gateway is not reachable'
    case 113:
      return 'no route to the gateway'
    default:
      return `error ${errno}`
  }
}
