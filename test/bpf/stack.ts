// SPDX-License-Identifier: Apache-2.0
/** How much stack the calls of a program take together. Layer: test.
 *
 * Older kernels round each frame up to 32 bytes, newer ones to fewer: these may take what the others refuse. */
import type { Code, Instruction } from './code.ts'

/** What a verifier allows. */
export const MOST_BYTES = 512
export const MOST_FRAMES = 8

export interface Depth {
  readonly bytes: number
  /** functions that have called each other, the program first, with the bytes that each has */
  readonly calls: readonly string[]
}

/** Each frame is rounded up to so many bytes. */
const ROUNDED_TO = 32
const FRAME_POINTER = 10
const CLASS = { LDX: 1, ST: 2, STX: 3 }
const MOVE = 0xbf
const ADD_NUMBER = 0x07

/** The calls that take most bytes, and those that are most. */
export function deepestOf(functions: readonly Code[], program: string): readonly Depth[] {
  const byName = new Map(functions.map((code) => [code.name, code]))
  const known = new Map<string, readonly Depth[]>()
  const depthsOf = (name: string): readonly Depth[] => {
    const before = known.get(name)
    const code = byName.get(name)
    if (before !== undefined) return before
    if (code === undefined) throw new Error(`no function ${name}`)
    const own = frameOf(code)
    const below = code.calls.flatMap(depthsOf)
    const [largest, longest] = [
      below.reduce<Depth>((most, one) => (one.bytes > most.bytes ? one : most), NONE),
      below.reduce<Depth>((most, one) => (one.calls.length > most.calls.length ? one : most), NONE),
    ]
    const depths = [largest, longest].map(({ bytes, calls }) => ({
      bytes: bytes + Math.ceil(Math.max(own, 1) / ROUNDED_TO) * ROUNDED_TO,
      calls: [`${name} ${own}`, ...calls],
    }))
    known.set(name, depths)
    return depths
  }
  return depthsOf(program)
}

const NONE: Depth = { bytes: 0, calls: [] }

/** Bytes below the frame pointer, by the lowest place that is read, written or pointed at. */
function frameOf({ instructions }: Code): number {
  return instructions.reduce((most, one, at) => Math.max(most, -placeOf(one, instructions[at - 1])), 0)
}

function placeOf({ opcode, dst, src, offset, immediate }: Instruction, before: Instruction | undefined): number {
  const kind = opcode & 7
  if (kind === CLASS.LDX && src === FRAME_POINTER) return offset
  if ((kind === CLASS.ST || kind === CLASS.STX) && dst === FRAME_POINTER) return offset
  const isPointer = before?.opcode === MOVE && before.src === FRAME_POINTER && before.dst === dst
  return opcode === ADD_NUMBER && isPointer ? immediate : 0
}
