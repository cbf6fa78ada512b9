// SPDX-License-Identifier: Apache-2.0
/** Old entries in new layouts. Layer: test. */
import { describe, expect, test } from 'vitest'
import { keyCopier, layoutSignature, valueCopier } from '#agent/maps/copy-entries.ts'
import type { StructLayout } from '#agent/maps/layout.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { compileC } from '../../support/compiled.ts'

/** One struct `v` as it was or is to be. */
function layout(body: string): StructLayout {
  return structLayout(
    compileC(
      `#include <linux/types.h>\nstruct leg { __u32 a; __u16 b; __u16 pad; };\nstruct v { ${body} };\nstruct v v __attribute__((section("kept")));`,
    ).btf,
    'v',
  )
}

const before = layout('__u64 seen; __be16 port; __u8 state; __u8 pad[5]; struct leg leg[2]; __u8 reserved[8];')

describe('valueCopier', () => {
  test('fields move, grow, appear and go by name; padding is not carried', () => {
    const after = layout('__u32 fresh; __u16 state; __be16 port; __u64 seen; struct leg leg[3];')
    const bytes = Buffer.from(
      '1122334455667788' + '01bb' + '07' + 'ffffffffff' + 'aaaaaaaabbbbffff' + 'ccccccccdddd0000' + 'eeeeeeeeeeeeeeee',
      'hex',
    )
    const copier = valueCopier(before, after)
    const expected = '00000000' + '0700' + '01bb' + '1122334455667788' + 'aaaaaaaabbbb0000' + 'ccccccccdddd0000' + '0000000000000000'
    expect(copier.copy(Buffer.concat([bytes, bytes]), 2).toString('hex')).toBe(expected + expected)
  })

  test.each([
    ['shrinks', '__u32 seen;', 'struct v.seen: __u64 in the old map, __u32 in the new one'],
    ['changes its byte order', '__u16 port;', 'struct v.port: __be16 in the old map, __u16 in the new one'],
    ['becomes a struct', 'struct leg state;', 'struct v.state: __u8 in the old map, leg in the new one'],
  ])('a field that %s is refused', (_, body, message) => {
    expect(() => valueCopier(before, layout(body))).toThrow(message)
  })
})

describe('keyCopier', () => {
  const key = layout('__u32 a; __be16 b; __u8 c; __u8 pad;')

  test('the same fields at other places are carried', () => {
    const copier = keyCopier(key, layout('__u8 c; __u8 pad[3]; __u32 a; __be16 b; __u16 pad2;'))
    expect(copier.copy(Buffer.from('11111111' + '2222' + '33' + '00', 'hex'), 1).toString('hex')).toBe(
      '33000000' + '11111111' + '2222' + '0000',
    )
  })

  test.each([
    ['new', '__u32 a; __be16 b; __u8 c; __u8 d;', 'the key field d is new'],
    ['gone', '__u32 a; __be16 b; __u16 pad;', 'the key field c is gone'],
    ['wider', '__u64 a; __be16 b; __u8 c; __u8 pad[5];', 'struct v.a: __u32 in the old map, __u64'],
  ])('a field that is %s is refused', (_, body, message) => {
    expect(() => keyCopier(key, layout(body))).toThrow(message)
  })
})

describe('layoutSignature', () => {
  test('tells places, sizes and byte orders apart, and nothing else', () => {
    const same = layout('unsigned long long seen; __be16 port; unsigned char state; __u8 pad[5]; struct leg leg[2]; __u8 reserved[8];')
    expect(layoutSignature(same)).toBe(layoutSignature(before))
    expect(layoutSignature(before)).toBe(
      '40{seen@0:u8,port@8:be2,state@10:u1,pad@11:u1[5],leg@16:8{a@0:u4,b@4:u2,pad@6:u2}[2],reserved@32:u1[8]}',
    )
  })
})
