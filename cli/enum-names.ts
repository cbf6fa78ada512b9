// SPDX-License-Identifier: Apache-2.0
/** Numbers of the programs by the names their enums give them: LEG_POD of enum leg_flag is "pod". Layer: cli (pure). */
import { enumValues, type Btf } from '#agent/maps/btf.ts'

/** Names of the bits that are set; a bit without a name is "bit 12". */
export function flagNames(btf: Btf, of: string): (flags: number) => readonly string[] {
  const names = namesOf(btf, of)
  return (flags) => {
    const words: string[] = []
    for (let bit = 1, left = flags; left > 0; bit *= 2) {
      if (left % 2 === 1) words.push(names.get(bit) ?? `bit ${Math.log2(bit)}`)
      left = Math.floor(left / 2)
    }
    return words
  }
}

/** The name of the number; the number itself where it has none. */
export function kindName(btf: Btf, of: string): (kind: number) => string {
  const names = namesOf(btf, of)
  return (kind) => names.get(kind) ?? String(kind)
}

/** All of one enum begin with the first word of its name. */
function namesOf(btf: Btf, of: string): ReadonlyMap<number, string> {
  const prefix = of.slice(0, of.indexOf('_') + 1).toUpperCase()
  return new Map([...enumValues(btf, of)].map(([name, value]) => [value, name.replace(prefix, '').toLowerCase().replaceAll('_', '-')]))
}
