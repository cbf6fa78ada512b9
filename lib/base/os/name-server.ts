// SPDX-License-Identifier: Apache-2.0
/** Whether a name server answers. Layer: lib/base. */
import { createSocket } from 'node:dgram'
import { systemClock } from '../clock.ts'
import { CONNECT_MS, type LocalEnd } from './connects.ts'

/** Any name server has an answer to it, if it be that there is none. */
const NAME = 'kubernetes.default.svc.cluster.local'
const ID = 0x4e50
const RECURSION_DESIRED = 0x0100
const RESPONSE = 0x8000
const HEADER_BYTES = 12
const [TYPE_A, CLASS_IN] = [1, 1]

/** Whatever it says; undefined: nothing in time. `host`: an address. `descriptor`: as for `connects`. */
export function answersName(host: string, port: number, descriptor?: number): Promise<LocalEnd | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    const ended = new AbortController()
    const end = (local?: LocalEnd): void => {
      if (ended.signal.aborted) return
      ended.abort()
      cancel()
      socket.close()
      resolve(local)
    }
    const cancel = systemClock.after(CONNECT_MS, () => {
      end()
    })
    socket.on('error', () => {
      end()
    })
    socket.on('message', (message) => {
      if (isAnswer(message)) end(socket.address())
    })
    socket.once('connect', () => {
      socket.send(question())
    })
    const connect = (): void => {
      if (!ended.signal.aborted) socket.connect(port, host)
    }
    if (descriptor === undefined) connect()
    else socket.bind({ fd: descriptor, exclusive: true }, connect)
  })
}

/** RFC 1035: one question, with recursion desired. */
function question(): Buffer {
  const labels = NAME.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
  const words = (...of: readonly number[]): Buffer => Buffer.from(of.flatMap((word) => [word >> 8, word & 0xff]))
  return Buffer.concat([words(ID, RECURSION_DESIRED, 1, 0, 0, 0), ...labels, Buffer.of(0), words(TYPE_A, CLASS_IN)])
}

function isAnswer(message: Buffer): boolean {
  return message.length >= HEADER_BYTES && message.readUInt16BE(0) === ID && (message.readUInt16BE(2) & RESPONSE) !== 0
}
