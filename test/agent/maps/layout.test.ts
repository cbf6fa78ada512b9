// SPDX-License-Identifier: Apache-2.0
/** What may cross to TypeScript, and the words with which the rest is refused. Layer: test. */
import { describe, expect, test } from 'vitest'
import { LayoutError } from '#lib/base/errors.ts'
import { holes, refuseHoles, structLayout } from '#agent/maps/layout.ts'
import { compileC } from '../../support/compiled.ts'

const { btf } = compileC(`
  #include <linux/types.h>
  struct inner { __u8 a; __u32 b; };
  struct good { __be16 port; __u8 kind; __u8 pad; struct inner in[2]; const volatile __u64 n; };
  struct packed_ok { __u8 a; __u32 b; } __attribute__((packed));
  struct bits { __u32 a:3, b:29; };
  struct anon { union { __u32 a; __u16 b; }; };
  struct named_union { union { __u32 a; __u16 b; } u; };
  struct pointer { void *p; };
  struct floating { float f; };
  struct opaque; struct user { struct opaque *o; };
  struct { struct good a; struct packed_ok b; struct bits c; struct anon d; struct pointer e; struct user f; struct floating g; struct named_union h; } keep __attribute__((section("kept")));
`)

describe('structLayout', () => {
  test('offsets, sizes, typedefs', () => {
    expect(structLayout(btf, 'good').fields.map(({ name, offset, layout }) => [name, offset, layout.size, layout.kind])).toEqual([
      ['port', 0, 2, 'int'],
      ['kind', 2, 1, 'int'],
      ['pad', 3, 1, 'int'],
      ['in', 4, 16, 'array'],
      ['n', 24, 8, 'int'],
    ])
    expect(structLayout(btf, 'good').fields[0]?.layout).toMatchObject({ typedefs: ['__be16', '__u16'] })
  })

  test('holes between, inside and in arrays', () => {
    expect(holes(structLayout(btf, 'good'))).toEqual([
      { from: 5, to: 8 },
      { from: 13, to: 16 },
      { from: 20, to: 24 },
    ])
    expect(holes(structLayout(btf, 'packed_ok'))).toEqual([])
  })

  test('a key with a hole is refused', () => {
    expect(() => {
      refuseHoles(structLayout(btf, 'inner'))
    }).toThrow('struct inner: a key with an unnamed hole at bytes 1..3')
  })

  test.each([
    ['bits', 'struct bits.a: a bitfield'],
    ['anon', 'struct anon: an anonymous struct or union inside'],
    ['named_union', 'struct named_union.u: a union cannot cross'],
    ['pointer', 'struct pointer.p: a pointer cannot cross'],
    ['floating', 'struct floating.f: a float cannot cross'],
    ['opaque', 'struct opaque: only declared in this object'],
    ['absent', 'struct absent: not in this object'],
  ])('%s is refused', (name, message) => {
    expect(() => structLayout(btf, name)).toThrow(LayoutError)
    expect(() => structLayout(btf, name)).toThrow(message)
  })
})
