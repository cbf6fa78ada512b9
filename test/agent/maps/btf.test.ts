// SPDX-License-Identifier: Apache-2.0
/** BTF as clang writes it, and bytes that no compiler writes. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ParseError } from '#lib/base/errors.ts'
import { enumValues, findType, parseBtf, typeById } from '#agent/maps/btf.ts'
import { compileC } from '../../support/compiled.ts'

const compiled = compileC(`
  typedef unsigned short __be16;
  enum small { A = 1, B, MINUS = -2 };
  enum large { HUGE = 0x100000000ULL, NEXT };
  struct later;
  struct all {
    __be16 port; const volatile int *p; char name[3]; enum small e; enum large l; unsigned bits:3;
    union { int i; float f; }; struct later *later; int (*call)(int, char); int * restrict r;
  };
  struct all value __attribute__((section("data")));
  int run(struct all *a) __attribute__((section("tc"))); int run(struct all *a) { return a->port; }
`)

describe('parseBtf', () => {
  test('a struct with everything in it', () => {
    const all = findType(compiled.btf, 'struct', 'all')
    const kinds = all?.members.map((member) => [member.name, typeById(compiled.btf, member.type).kind, member.bitSize])
    expect(kinds).toEqual([
      ['port', 'typedef', 0],
      ['p', 'pointer', 0],
      ['name', 'array', 0],
      ['e', 'enum', 0],
      ['l', 'enum', 0],
      ['bits', 'int', 3],
      ['', 'union', 0],
      ['later', 'pointer', 0],
      ['call', 'pointer', 0],
      ['r', 'restrict', 0],
    ])
  })

  test('enums, signed and of 64 bits', () => {
    expect([...enumValues(compiled.btf, 'small')]).toEqual([
      ['A', 1],
      ['B', 2],
      ['MINUS', -2],
    ])
    expect([...enumValues(compiled.btf, 'large')]).toEqual([
      ['HUGE', 2 ** 32],
      ['NEXT', 2 ** 32 + 1],
    ])
  })

  test('an enum that nothing refers to is named in the error', () => {
    expect(() => enumValues(compiled.btf, 'gone')).toThrow(/gone.*left it out/)
  })

  test('sections name their variables', () => {
    const [variable] = findType(compiled.btf, 'section', 'data')?.variables ?? []
    expect(variable === undefined ? undefined : typeById(compiled.btf, variable.type)).toMatchObject({ kind: 'variable', name: 'value' })
  })

  test('property: damaged BTF is refused or read, never worse', () => {
    const good = compiled.section('.BTF')
    const damage = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(damage, fc.nat(good.length), (changes, cut) => {
        const bytes = Buffer.from(cut % 3 === 0 ? good.subarray(0, cut) : good)
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
        try {
          parseBtf(bytes)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ParseError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})
