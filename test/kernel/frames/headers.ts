// SPDX-License-Identifier: Apache-2.0
/** Draws what stands before a packet's transport header. Layer: test. */
import type { Extension, Shape } from './bytes.ts'
import type { Dice } from './dice.ts'

const EXTENSIONS = [0, 43, 60, 60, 51, 135, 59, 44]

export function optionsOf(dice: Dice): Uint8Array {
  return dice.one([
    Uint8Array.from([1, 1, 1, 1]),
    Uint8Array.from([148, 4, 0, 0]),
    Uint8Array.from([131, 7, 4, 10, 10, 1, 5, 0]),
    Uint8Array.from([7, 40, 4, 0]),
    new Uint8Array(40).fill(1),
  ])
}

export function extensionsOf(dice: Dice): readonly Extension[] {
  return Array.from({ length: dice.one([1, 1, 2, 3, 7, 8, 9]) }, () => ({
    kind: dice.one(EXTENSIONS),
    extra: dice.one([0, 0, 8, 16]),
    field: dice.one([0, 0, 0, 1, 8, 9]),
    id: dice.below(3),
    left: dice.one([0, 0, 1]),
  }))
}

export function fragmentOf(dice: Dice, length: number): Required<Shape>['fragment'] {
  const [offset, more] = dice.one([
    [0, true],
    [0, true],
    [8, false],
    [8, true],
    [16, false],
    [24, false],
    [24, true],
    [0, false],
  ] as const)
  return { id: 70 + dice.below(2), offset: Math.min(offset, length & ~7), length: dice.one([8, 16, 24, 24, 1400]), more }
}

export function tagsOf(dice: Dice): readonly (readonly [number, number])[] {
  return Array.from({ length: dice.one([1, 1, 1, 2]) }, () => [dice.one([0x8100, 0x88a8]), dice.one([0, 0, 0x2000, 7, 0xfff])] as const)
}
