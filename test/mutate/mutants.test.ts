// SPDX-License-Identifier: Apache-2.0
/** Mutants of sources. Layer: test. */
import { describe, expect, test } from 'vitest'
import { applied, described, mutantsOfC, mutantsOfTypeScript } from './mutants.ts'

const TYPESCRIPT = `// a && b
export function f(a: number, b: boolean): string {
  if (a < 3) log('x && y')
  return b && a !== 2 ? 'yes' : 'no'
}
`
const C = `#define A(x) (x == 1)
/* a == b */
static bool f(struct s *s, __u32 i)
{
	if (!s->known || i << 2 >= 8) // i == 1
		return false;
	return s->text[0] == 'a' && "b == c";
}
`

describe('mutants', () => {
  test('of TypeScript change one thing each: an operator, a condition, a call', () => {
    expect(mutantsOfTypeScript(TYPESCRIPT).map((one) => described(TYPESCRIPT, one))).toEqual([
      "3: if (a < 3) log('x && y') → nothing, in: if (a < 3) log('x && y')",
      "3: < → <=, in: if (a < 3) log('x && y')",
      "3: log('x && y') → nothing, in: if (a < 3) log('x && y')",
      "4: b && a !== 2 ? 'yes' : 'no' → b && a !== 2 ? 'no' : 'yes', in: return b && a !== 2 ? 'yes' : 'no'",
      "4: && → ||, in: return b && a !== 2 ? 'yes' : 'no'",
      "4: !== → ===, in: return b && a !== 2 ? 'yes' : 'no'",
    ])
  })

  test('of C change an operator or a truth, and nothing in comments, texts and macros', () => {
    expect(mutantsOfC(C).map((one) => described(C, one))).toEqual([
      '5: ! → nothing, in: if (!s->known || i << 2 >= 8) // i == 1',
      '5: || → &&, in: if (!s->known || i << 2 >= 8) // i == 1',
      '5: >= → >, in: if (!s->known || i << 2 >= 8) // i == 1',
      '6: false → true, in: return false;',
      `7: == → !=, in: return s->text[0] == 'a' && "b == c";`,
      `7: && → ||, in: return s->text[0] == 'a' && "b == c";`,
    ])
  })

  test('leave the rest of the text as it is', () => {
    expect(applied('a && b', { at: 2, end: 4, replacement: '||' })).toBe('a || b')
  })
})
