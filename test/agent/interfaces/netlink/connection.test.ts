// SPDX-License-Identifier: Apache-2.0
/** Which of the kernel's connections tell who has opened them. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { decodeConnection, type Tuple } from '#agent/interfaces/netlink/connection.ts'
import { encodeAttribute } from '#agent/interfaces/netlink/message.ts'
import { CONNECTION_V6, PICKED_UP_CONNECTION, TRANSLATED_CONNECTION } from './captured.ts'

const text = ({ src, sport, dst, dport }: Tuple): string => `${formatAddr(src)} ${sport} ${formatAddr(dst)} ${dport}`

function decoded(payload: Buffer): readonly string[] | undefined {
  const connection = decodeConnection(payload)
  return connection && [text(connection.sent), text(connection.answered)]
}

/** With other bytes behind the first place where `head` is. */
function changed(payload: Buffer, head: string, ...bytes: readonly number[]): Buffer {
  const copy = Buffer.from(payload)
  const at = copy.indexOf(head, 0, 'hex')
  expect(at).toBeGreaterThan(0)
  copy.set(bytes, at + head.length / 2)
  return copy
}

const STATE = '0500010003000000050002'.slice(0, 8)
const inState = (payload: Buffer, state: number): Buffer => changed(payload, `2c000180${STATE}`, state)
const assured = (payload: Buffer): Buffer => changed(payload, '08000300', 0, 0, 0, 0xe)

describe('an open TCP connection', () => {
  test('is read as its client sends it, and as its server answers', () => {
    expect(decoded(TRANSLATED_CONNECTION)).toEqual(['127.0.0.1 40003 127.0.0.9 80', '127.0.0.1 7000 127.0.0.1 40003'])
    expect(decoded(CONNECTION_V6)).toEqual(['::1 40002 ::1 7001', '::1 7001 ::1 40002'])
  })

  test('may be closed by one end, or by both but for the last acknowledgement', () => {
    const states = Array.from({ length: 12 }, (_, state) => state)
    expect(states.filter((state) => decoded(inState(CONNECTION_V6, state)) !== undefined)).toEqual([3, 4, 5])
  })
})

describe('the decoder ignores', () => {
  test('a connection that the kernel picked up on its way, however many packets both ends have sent', () => {
    expect(decoded(PICKED_UP_CONNECTION)).toBeUndefined()
    expect(decoded(assured(PICKED_UP_CONNECTION))).toBeUndefined()
    // its flags are what gives it away
    expect(decoded(changed(assured(PICKED_UP_CONNECTION), '06000400', 0x02))).toBeDefined()
  })

  test('a connection without packets of both ends', () => {
    expect(decoded(changed(CONNECTION_V6, '08000300', 0, 0, 0, 0xa))).toBeUndefined()
  })

  test('another protocol, with the same attributes', () => {
    // SCTP, by the protocol of its own state and of its tuple
    expect(decoded(changed(CONNECTION_V6, '30000480' + '2c00', 0x03))).toBeUndefined()
    expect(decoded(changed(CONNECTION_V6, '1c00028005000100', 132))).toBeUndefined()
  })

  test('a connection in a zone', () => {
    expect(decoded(Buffer.concat([CONNECTION_V6, encodeAttribute(18, Buffer.of(0, 7))]))).toBeUndefined()
  })

  test('bytes that end early', () => {
    for (let length = 0; length < TRANSLATED_CONNECTION.length; length++)
      expect(decoded(TRANSLATED_CONNECTION.subarray(0, length))).toBeUndefined()
  })
})
