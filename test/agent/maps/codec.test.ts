// SPDX-License-Identifier: Apache-2.0
/** Shapes against layouts and against bytes that the C compiler made. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAGLEV_SIZE } from '#lib/base/bpf-constants.ts'
import { addrFromBytes, parseAddr } from '#lib/base/ip.ts'
import type { Codec } from '#agent/maps/codec.ts'
import { bind, bindKey } from '#agent/maps/codec.ts'
import type { Field, Kind } from '#agent/maps/field-kinds.ts'
import { addr, arrayOf, be16, be32, mac, ns, shape, u16, u32, u64, u8 } from '#agent/maps/field-kinds.ts'
import { structLayout } from '#agent/maps/layout.ts'
import * as shapes from '#agent/maps/shapes.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { compileC } from '../../support/compiled.ts'
import { NOT_JUDGED } from '../../support/flow-value.ts'

const { btf, section } = compileC(`
  #include <linux/bpf.h>
  #include "maps/packets.h"
  #include "maps/sockets.h"
  #include "types/config.h"
  #define V4(a, b, c, d) { { 0, 0, __builtin_bswap32(0xffff), __builtin_bswap32(a << 24 | b << 16 | c << 8 | d) } }
  #define IMAGE(type) struct type image_##type __attribute__((section("image." #type)))
  #define BE16(n) __builtin_bswap16(n)
  IMAGE(frontend_key) = { .addr = V4(10, 0, 0, 1), .port = BE16(443), .proto = 6 };
  IMAGE(frontend) = { .inside = { 0x0123456789abcdefULL, 7 }, .outside = { 0xfULL, 2 }, .flags = FRONTEND_EXTERNAL, .affinity = 10800 };
  IMAGE(backend_key) = { .list = 0xf000000000000001ULL, .slot = 9 };
  IMAGE(range_key) = { .prefix = 168, .set = { __builtin_bswap32(0x01234567), __builtin_bswap32(0x89abcdef) }, .addr = V4(10, 1, 2, 0) };
  IMAGE(maglev) = { .slot = { 1, 0x203, [MAGLEV_SIZE - 1] = 7 } };
  IMAGE(backend) = { .addr = V4(10, 1, 2, 3), .port = BE16(8080), .flags = 5 };
  IMAGE(iface) = { .mtu = 1450, .kind = IFACE_HOST, .mac = { 2, 0, 0, 0xaa, 0xbb, 0xcc } };
  IMAGE(ct_value) = {
    .seen = 1234567890123ULL, .out = { .src = V4(1, 2, 3, 4), .dst = V4(5, 6, 7, 8), .sport = BE16(1), .dport = BE16(65535) },
    .state = CT_TCP_OPEN, .via = V4(9, 9, 9, 9), .leg = { { .ifindex = 3, .mtu = 1500, .flags = LEG_READY | LEG_POD, .ack = 0xfffffffe, .window = 512, .wscale = 7, .hook = 2, .bytes = 5000000000ULL, .packets = 7 }, { .ifindex = 4 } },
    .slot = 5, .lane = 3,
  };
  IMAGE(flow_event) = {
    .at = 1234567890123ULL, .sent = { .src = V4(1, 2, 3, 4), .dst = V4(5, 6, 7, 8), .sport = BE16(1), .dport = BE16(65535) },
    .egress_rule = 7, .staged_ingress_rule = 8, .device = 9, .length = 1500, .kind = EVENT_DENIED, .reason = DROP_POLICY, .proto = 6, .hook = 2, .tunnelled = 1, .lane = 300,
  };
  IMAGE(socket_key) = { .cookie = 0xffffffffffffffffULL, .addr = V4(1, 1, 1, 1), .port = BE16(53), .proto = 17, .role = 1 };
  struct { enum frontend_flag a; enum iface_kind b; enum leg_flag c; enum ct_state d; } keep __attribute__((section("kept")));
  struct strange { signed int s; __be32 n; __u16 le; __u8 six[6]; struct addr four[4]; __u64 big; __u8 tail; } strange __attribute__((section("kept")));
`)

const anyV4 = parseAddr('0.0.0.0')
const zero = addrFromBytes(new Uint8Array(16))

function codecOf<T>(field: Field<T>): Codec<T> {
  return bind(field, structLayout(btf, field.kind.kind === 'struct' ? field.kind.name : ''))
}

describe('bytes made by the compiler', () => {
  const cases: readonly (readonly [string, Field<unknown>, unknown])[] = [
    ['frontend_key', shapes.frontendKey, { addr: parseAddr('10.0.0.1'), port: 443, proto: 6 }],
    [
      'frontend',
      shapes.frontend,
      { inside: { list: '0123456789abcdef', count: 7 }, outside: { list: '000000000000000f', count: 2 }, flags: 2, affinity: 10800 },
    ],
    ['backend_key', shapes.backendKey, { list: 'f000000000000001', slot: 9 }],
    ['range_key', shapes.rangeKey, { prefix: 168, set: '0123456789abcdef', addr: parseAddr('10.1.2.0') }],
    [
      'maglev',
      shapes.maglev,
      { slot: Uint16Array.from({ length: MAGLEV_SIZE }, (_, at) => ({ 0: 1, 1: 0x203, [MAGLEV_SIZE - 1]: 7 })[at] ?? 0) },
    ],
    ['backend', shapes.backend, { addr: parseAddr('10.1.2.3'), node: zero, port: 8080, flags: 5 }],
    ['iface', shapes.iface, { mtu: 1450, kind: 2, mac: '02:00:00:aa:bb:cc' }],
    ['socket_key', shapes.socketKey, { cookie: 'ffffffffffffffff', addr: parseAddr('1.1.1.1'), port: 53, proto: 17, role: 1 }],
    [
      'flow_event',
      shapes.flowEvent,
      {
        at: 1234567.890123,
        sent: { src: parseAddr('1.2.3.4'), dst: parseAddr('5.6.7.8'), sport: 1, dport: 65535 },
        flow: { src: zero, dst: zero, sport: 0, dport: 0 },
        egress_rule: 7,
        ingress_rule: 0,
        staged_egress_rule: 0,
        staged_ingress_rule: 8,
        device: 9,
        length: 1500,
        kind: 2,
        reason: 26,
        proto: 6,
        hook: 2,
        tunnelled: 1,
        lane: 300,
      },
    ],
    [
      'ct_value',
      shapes.ctValue,
      {
        seen: 1234567.890123,
        out: { src: parseAddr('1.2.3.4'), dst: parseAddr('5.6.7.8'), sport: 1, dport: 65535 },
        state: 4,
        via: parseAddr('9.9.9.9'),
        leg: [
          { ifindex: 3, mtu: 1500, flags: 5, ack: 0xfffffffe, window: 512, wscale: 7, hook: 2, bytes: 5000000000, packets: 7, met: 0 },
          { ifindex: 4, mtu: 0, flags: 0, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 },
        ],
        slot: 5,
        lane: 3,
        ...NOT_JUDGED,
      },
    ],
  ]

  test.each(cases)('%s decodes to its values and encodes back to the same bytes', (name, field, value) => {
    const codec = codecOf(field)
    expect(decodeBytes(codec, section(`image.${name}`))).toEqual(value)
    expect(encodeBytes(codec, value)).toEqual(section(`image.${name}`))
  })
})

/** Any value of a kind. */
function arbitrary(kind: Kind): fc.Arbitrary<unknown> {
  switch (kind.kind) {
    case 'uint':
    case 'big':
      return fc.integer({ min: 0, max: 2 ** (8 * kind.size) - 1 })
    case 'count':
      return fc.maxSafeNat()
    case 'ns':
      return fc.nat({ max: 2 ** 31 - 1 })
    case 'u16List':
      // as many single draws would take seconds
      return fc.nat().map((seed) => Uint16Array.from({ length: kind.length }, (_, at) => seed * at))
    case 'bitList':
      return fc.nat().map((seed) => Uint32Array.from({ length: 2 * kind.words }, (_, at) => seed * at))
    case 'id':
    case 'bigId':
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((id) => id.toString(16).padStart(16, '0'))
    case 'addr':
      return fc.uint8Array({ minLength: 16, maxLength: 16 }).map(addrFromBytes)
    case 'mac':
      return fc
        .uint8Array({ minLength: 6, maxLength: 6 })
        .map((bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':'))
    case 'array':
      return fc.array(arbitrary(kind.of), { minLength: kind.length, maxLength: kind.length })
    case 'struct':
      return fc.record(Object.fromEntries(kind.fields.map(([name, field]) => [name, arbitrary(field)])))
  }
}

describe('encode and decode', () => {
  const named = Object.entries(shapes)

  test.each(named)('property: %s round-trips at any place and leaves no byte unwritten', (_, field: Field<unknown>) => {
    const codec = codecOf(field)
    fc.assert(
      fc.property(arbitrary(field.kind), fc.nat(7), (value, at) => {
        const [noise, clean] = [Buffer.alloc(codec.size + 8, 0xa5), Buffer.alloc(codec.size + 8)]
        codec.encode(value, new DataView(noise.buffer, noise.byteOffset), at)
        codec.encode(value, new DataView(clean.buffer, clean.byteOffset), at)
        expect(codec.decode(new DataView(noise.buffer, noise.byteOffset), at)).toEqual(value)
        expect(noise.subarray(at, at + codec.size)).toEqual(clean.subarray(at, at + codec.size))
        expect([noise[at + codec.size], at === 0 ? 0xa5 : noise[at - 1]]).toEqual([0xa5, 0xa5])
      }),
    )
  })

  test.each([
    [shapes.frontendKey, { addr: anyV4, port: 65536, proto: 6 }, 'frontend_key.port: the value 65536'],
    [shapes.frontendKey, { addr: anyV4, port: 80, proto: -1 }, 'frontend_key.proto: the value -1'],
    [shapes.frontendKey, { addr: 'short', port: 80, proto: 6 }, 'frontend_key.addr: the value "short"'],
    [shapes.backendKey, { list: '0123456789abcdeG', slot: 0 }, 'backend_key.list'],
    [shapes.backendKey, { list: '1', slot: 0 }, 'backend_key.list'],
    [shapes.iface, { mtu: 1.5, kind: 1, mac: '02:00:00:00:00:01' }, 'iface.mtu: the value 1.5'],
    [shapes.iface, { mtu: 1500, kind: 1, mac: '2:0:0:0:0:1' }, 'iface.mac'],
  ])('a value that does not fit is refused by name', (field: Field<unknown>, value, message) => {
    expect(() => encodeBytes(codecOf(field), value)).toThrow(message)
  })

  test('a count above 2^53 is refused, not rounded', () => {
    const codec = bind(shape('socket_key', { cookie: u64, addr, port: be16, proto: u8, role: u8 }), structLayout(btf, 'socket_key'))
    expect(() => decodeBytes(codec, section('image.socket_key'))).toThrow('socket_key.cookie')
  })
})

describe('bind refuses', () => {
  const whole = { n: be32, le: u16, six: mac, four: arrayOf(addr, 4), big: u64, tail: u8 }
  const strange = (fields: Readonly<Record<string, Field<unknown>>>) => () => bind(shape('strange', fields), structLayout(btf, 'strange'))

  test.each([
    ['another struct', () => bind(shapes.frontend, structLayout(btf, 'backend')), 'the shape has struct frontend, the object backend'],
    ['a signed integer', strange({ ...whole, s: u32 }), 'strange.s: u32 in the shape'],
    [
      'network order read as host order',
      () => bind(shape('frag', { sport: u16, dport: be16, heads: u16, proto: u8 }), structLayout(btf, 'frag')),
      'frag.sport: u16 in the shape, __be16 in the object',
    ],
    [
      'host order read as network order',
      () => bind(shape('choice', { list: u64, count: be16 }), structLayout(btf, 'choice')),
      'choice.count: be16 in the shape, __u32 in the object',
    ],
    [
      'a missing field',
      () => bind(shape('choice', { list: u64, count: u32, more: u8 }), structLayout(btf, 'choice')),
      'field more is in the shape (uint) but not in the object',
    ],
    [
      'an extra field',
      () => bind(shape('choice', { list: u64 }), structLayout(btf, 'choice')),
      'field count is in the object (__u32) but not in the shape',
    ],
    [
      'another size',
      () => bind(shape('choice', { list: u64, count: u16 }), structLayout(btf, 'choice')),
      'choice.count: u16 in the shape, __u32 in the object',
    ],
    [
      'another length',
      () =>
        bind(
          shape('ct_value', {
            seen: ns,
            out: shapes.ctTuple,
            state: u8,
            epoch: u8,
            lane: u16,
            via: addr,
            leg: arrayOf(shapes.ctLeg, 3),
            slot: u32,
            egress_rule: u32,
            ingress_rule: u32,
            staged_egress_rule: u32,
            staged_ingress_rule: u32,
            device: u32,
          }),
          structLayout(btf, 'ct_value'),
        ),
      'the shape has 3 elements',
    ],
    ['a hole in a key', () => bindKey(shape('strange', whole), structLayout(btf, 'strange')), 'a key with an unnamed hole'],
  ])('%s', (_, attempt: () => unknown, message) => {
    expect(attempt).toThrow(message)
  })
})
