// SPDX-License-Identifier: Apache-2.0
/** Every verifier takes the stack of our programs, whichever kernel this is. Layer: test. */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { functionsOf, type Code } from './code.ts'
import { deepestOf, MOST_BYTES, MOST_FRAMES } from './stack.ts'

const FOLDER = resolve(import.meta.dirname, '../../bpf')
const objects = readdirSync(FOLDER).filter((name) => name.endsWith('.bpf.o'))

test.each(objects)('no calls in %s take more than 512 bytes of stack, or are more than 8', (name) => {
  const functions = functionsOf(join(FOLDER, name))
  const programs = functions.filter(({ isProgram }) => isProgram)
  expect(programs.length).toBeGreaterThan(0)
  const depths = programs.flatMap((program) => deepestOf(functions, program.name))
  expect(depths.filter(({ bytes, calls }) => bytes > MOST_BYTES || calls.length > MOST_FRAMES)).toEqual([])
})

test('calls are followed from the programs down', () => {
  const functions = functionsOf(join(FOLDER, 'tc.bpf.o'))
  const [largest, longest] = deepestOf(functions, 'slow')
  expect(largest?.calls[1]).toMatch(/^icmp_related /)
  expect(largest?.bytes).toBeGreaterThan(400)
  expect(longest?.calls.length).toBeGreaterThan(5)
})

test('a frame is as deep as its lowest place, and rounded up', () => {
  const code = (name: string, instructions: Code['instructions'], calls: readonly string[] = []): Code => ({
    ...{ name, instructions, calls },
    isProgram: false,
  })
  const none = { dst: 0, src: 0, offset: 0, immediate: 0 }
  const functions = [
    code('top', [{ ...none, opcode: 0x7b, dst: 10, offset: -40 }], ['left', 'right']),
    code('left', [{ ...none, opcode: 0x79, src: 10, offset: -8 }], ['leaf']),
    code('right', [
      { ...none, opcode: 0xbf, dst: 2, src: 10 },
      { ...none, opcode: 0x07, dst: 2, immediate: -100 },
      { ...none, opcode: 0x07, dst: 3, immediate: -400 },
    ]),
    code('leaf', []),
  ]
  expect(deepestOf(functions, 'top')).toEqual([
    { bytes: 192, calls: ['top 40', 'right 100'] },
    { bytes: 128, calls: ['top 40', 'left 8', 'leaf 0'] },
  ])
})
