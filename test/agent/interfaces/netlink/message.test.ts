// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import { decodeAddr } from '#agent/interfaces/netlink/addr.ts'
import { decodeLink } from '#agent/interfaces/netlink/link.ts'
import {
  attributeString,
  attributeU32,
  decodeAttributes,
  decodeError,
  decodeMessages,
  encodeAttribute,
  encodeAttributeU32,
  encodeMessage,
} from '#agent/interfaces/netlink/message.ts'
import { decodeRoute, encodeRoute } from '#agent/interfaces/netlink/route.ts'
import { decodeFilter, decodeQdisc } from '#agent/interfaces/netlink/tc.ts'
import * as captured from './captured.ts'

const u32 = fc.nat({ max: 0xffffffff })
const message = fc.record({
  type: fc.nat({ max: 0xffff }),
  flags: fc.nat({ max: 0xffff }),
  seq: u32,
  payload: fc.uint8Array({ maxLength: 80 }),
})

describe('messages', () => {
  test('any sequence comes back as it was', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), (messages) => {
        const decoded = decodeMessages(Buffer.concat(messages.map(encodeMessage)))
        expect(decoded.map(({ type, flags, seq, payload }) => ({ type, flags, seq, payload: new Uint8Array(payload) }))).toEqual(messages)
      }),
    )
  })

  test('a cut one ends the walk', () => {
    const bytes = encodeMessage({ type: 1, flags: 0, seq: 1, payload: new Uint8Array(8) })
    expect(decodeMessages(Buffer.concat([bytes, bytes.subarray(0, 20)]))).toHaveLength(1)
  })
})

describe('attributes', () => {
  test('any set comes back as it was', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.nat({ max: 0x3fff }), fc.uint8Array({ maxLength: 40 })), { selector: ([type]) => type }),
        (all) => {
          const decoded = decodeAttributes(Buffer.concat(all.map(([type, value]) => encodeAttribute(type, value))))
          expect([...decoded].map(([type, value]) => [type, new Uint8Array(value)])).toEqual(all)
        },
      ),
    )
  })

  test('numbers and strings', () => {
    const attributes = decodeAttributes(
      Buffer.concat([encodeAttributeU32(1, 0xfffffff2), encodeAttribute(2, Buffer.from('eth0\0')), encodeAttribute(3, Buffer.alloc(2))]),
    )
    expect(attributeU32(attributes, 1)).toBe(0xfffffff2)
    expect(attributeU32(attributes, 3)).toBeUndefined()
    expect(attributeString(attributes, 2)).toBe('eth0')
    expect(attributeString(attributes, 9)).toBeUndefined()
  })
})

describe('routes', () => {
  test.each([
    ['10.1.0.0/16', '192.0.2.1'],
    ['fd01::/64', 'fd00::2'],
  ])('%s comes back as it was', (cidr, via) => {
    const route = { cidr: parseCidr(cidr), via: parseAddr(via) }
    expect(decodeRoute(encodeRoute(route))).toMatchObject({ ...route, table: 254, protocol: 80, device: 0 })
  })
})

/** No bytes may make a decoder throw, whether the kernel sends them or another process in its place. */
describe('broken bytes', () => {
  const all = Object.values(captured).filter((value) => Buffer.isBuffer(value))
  const feed = (datagram: Buffer): void => {
    for (const one of decodeMessages(datagram)) {
      decodeError(one)
      for (const decode of [decodeLink, decodeAddr, decodeRoute, decodeQdisc, decodeFilter]) decode(one.payload)
    }
  }

  test('captured messages cut anywhere or with any byte changed', () => {
    fc.assert(
      fc.property(
        fc.record({ datagram: fc.constantFrom(...all), cut: fc.nat(), at: fc.nat(), byte: fc.nat({ max: 255 }) }),
        ({ datagram, cut, at, byte }) => {
          const bytes = Buffer.from(datagram.subarray(0, cut % (datagram.length + 1)))
          if (bytes.length > 0) bytes[at % bytes.length] = byte
          feed(bytes)
        },
      ),
      { numRuns: 5000 },
    )
  })

  test('noise behind a good header', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (payload) => {
        feed(encodeMessage({ type: 16, flags: 0, seq: 0, payload }))
        for (const decode of [decodeLink, decodeAddr, decodeRoute, decodeQdisc, decodeFilter]) decode(Buffer.from(payload))
      }),
      { numRuns: 2000 },
    )
  })
})
