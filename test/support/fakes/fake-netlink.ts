// SPDX-License-Identifier: Apache-2.0
/** A routing-netlink kernel of links and addresses, as far as the monitor can tell. Layer: test. */
import { addrBytes, isV4, parseAddr } from '#lib/base/ip.ts'
import type { NetlinkTransport } from '#agent/interfaces/netlink/exchange.ts'
import {
  decodeMessages,
  encodeAttribute,
  encodeAttributeU32,
  encodeMessage,
  NLMSG_DONE,
  NLMSG_ERROR,
} from '#agent/interfaces/netlink/message.ts'

export interface FakeLink {
  readonly index: number
  readonly name: string
  readonly mtu?: number
  readonly up?: boolean
  readonly kind?: string
  readonly addresses?: readonly { readonly addr: string; readonly bits: number; readonly scope?: number }[]
}

const PORT = 4242
const DUMP_INTERRUPTED = 0x10

class Overrun extends Error {
  readonly code = 'ENOBUFS'
}

/** What is done to it is heard of by the callback at once, unless `quiet`. */
export class FakeNetlink implements NetlinkTransport {
  readonly port = PORT
  readonly sent: number[] = []
  closed = false
  #links = new Map<number, FakeLink>()
  #queue: (Buffer | Overrun)[] = []
  #readable: (() => void) | undefined
  #held = false
  /** the next so many dumps say that they are inconsistent */
  interruptedDumps = 0
  /** errno of the next request that is no dump; 0: it succeeds */
  nextErrno = 0

  /** An interface comes or is changed. */
  set(link: FakeLink, how: { readonly quiet?: boolean } = {}): void {
    const before = this.#links.get(link.index)
    this.#links.set(link.index, link)
    if (how.quiet === true) return
    this.#event(linkMessage(16, link))
    for (const one of before?.addresses ?? []) if (!(link.addresses ?? []).includes(one)) this.#event(addrMessage(21, link.index, one))
    for (const one of link.addresses ?? []) this.#event(addrMessage(20, link.index, one))
    this.#tell()
  }

  remove(index: number, how: { readonly quiet?: boolean } = {}): void {
    const link = this.#links.get(index)
    this.#links.delete(index)
    if (link === undefined || how.quiet === true) return
    this.#event(linkMessage(17, link))
    this.#tell()
  }

  /** The socket's buffer was too small for what happened; `first`: that is heard before what did fit. */
  overrun(how: { readonly first?: boolean } = {}): void {
    if (how.first === true) this.#queue.unshift(new Overrun('no buffer space'))
    else this.#queue.push(new Overrun('no buffer space'))
    this.#tell()
  }

  /** No listener runs until {@link release}: what happens waits in the socket. */
  hold(): void {
    this.#held = true
  }

  release(): void {
    this.#held = false
    this.#tell()
  }

  /** Any message, as if from the kernel. */
  event(datagram: Buffer): void {
    this.#queue.push(datagram)
    this.#tell()
  }

  send(bytes: Uint8Array): void {
    for (const { type, seq, flags } of decodeMessages(Buffer.from(bytes))) {
      this.sent.push(type)
      if (type === 18) for (const link of this.#links.values()) this.#reply(seq, linkMessage(16, link))
      else if (type === 22)
        for (const link of this.#links.values()) for (const one of link.addresses ?? []) this.#reply(seq, addrMessage(20, link.index, one))
      if ((flags & 0x300) === 0x300) {
        const interrupted = this.interruptedDumps > 0 ? DUMP_INTERRUPTED : 0
        this.interruptedDumps -= interrupted === 0 ? 0 : 1
        this.#reply(seq, { type: NLMSG_DONE, flags: interrupted, payload: Buffer.alloc(4) })
      } else {
        const payload = Buffer.alloc(20)
        payload.writeInt32LE(-this.nextErrno)
        this.nextErrno = 0
        this.#reply(seq, { type: NLMSG_ERROR, payload })
      }
    }
  }

  receive(): Buffer | undefined {
    const next = this.#queue.shift()
    if (next instanceof Overrun) throw next
    return next
  }

  receiveWait(): Buffer | undefined {
    return this.receive()
  }

  onReadable(callback: (() => void) | undefined): void {
    this.#readable = callback
  }

  close(): void {
    this.closed = true
  }

  #tell(): void {
    if (!this.#held) this.#readable?.()
  }

  #event(message: Message): void {
    this.#queue.push(encodeMessage({ flags: 0, seq: 1, ...message }))
  }

  #reply(seq: number, message: Message): void {
    const bytes = encodeMessage({ flags: 0, ...message, seq })
    bytes.writeUInt32LE(PORT, 12)
    this.#queue.push(bytes)
  }
}

interface Message {
  readonly type: number
  readonly flags?: number
  readonly payload: Buffer
}

function linkMessage(type: number, link: FakeLink): Message {
  const header = Buffer.alloc(16)
  header.writeInt32LE(link.index, 4)
  header.writeUInt32LE((link.up ?? true) ? 0x10041 : 0, 8)
  const kind = link.kind === undefined ? [] : [encodeAttribute(18, encodeAttribute(1, Buffer.from(`${link.kind}\0`)))]
  const name = encodeAttribute(3, Buffer.from(`${link.name}\0`))
  return {
    type,
    payload: Buffer.concat([
      header,
      name,
      encodeAttributeU32(4, link.mtu ?? 1500),
      encodeAttribute(1, Buffer.from([2, 0, 0, 0, 0, link.index])),
      ...kind,
    ]),
  }
}

function addrMessage(
  type: number,
  index: number,
  address: { readonly addr: string; readonly bits: number; readonly scope?: number },
): Message {
  const addr = parseAddr(address.addr)
  const header = Buffer.alloc(8)
  header.writeUInt8(isV4(addr) ? 2 : 10, 0)
  header.writeUInt8(address.bits, 1)
  header.writeUInt8(address.scope ?? 0, 3)
  header.writeUInt32LE(index, 4)
  return { type, payload: Buffer.concat([header, encodeAttribute(1, isV4(addr) ? addrBytes(addr).subarray(12) : addrBytes(addr))]) }
}
