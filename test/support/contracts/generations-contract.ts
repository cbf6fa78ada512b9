// SPDX-License-Identifier: Apache-2.0
/** What generations of programs must do, the fake ones included. Layer: test. */
import { expect, test } from 'vitest'
import type { Configuration } from '#agent/compile/desired.ts'
import type { GenerationTables } from '#agent/dataplane/generation-tables.ts'
import type { Generations } from '#agent/dataplane/loader.ts'
import { KNOBS, SIZES } from '../knobs.ts'

export interface GenerationsUnderTest {
  readonly generations: Generations
  /** from now on programs are refused */
  readonly refuse: () => void
  /** takes the pins of np_ct and of the host's tail-call array away */
  readonly unpin: () => void
}

const PLAIN: Configuration = { knobs: KNOBS, mapSizes: SIZES }
const DSR: Configuration = { knobs: { ...KNOBS, dsr: true }, mapSizes: SIZES }
const LARGER: Configuration = { knobs: KNOBS, mapSizes: { ...SIZES, conntrack: 2 * SIZES.conntrack } }

/** `setup` is called once for each test, on a node where nothing is, which the caller clears afterwards. */
export function generationsContract(setup: () => GenerationsUnderTest): void {
  test('what is loaded is pinned, and adopted when the same is asked for again', async () => {
    const { generations } = setup()
    expect([generations.list(), generations.flowTableSize()]).toEqual([[], undefined])
    using first = await generations.load(PLAIN)
    const { id } = first.generation
    expect([generations.list(), generations.flowTableSize()]).toEqual([[id], SIZES.conntrack])
    using second = await generations.load(PLAIN)
    const seen = ({ generation, shared }: GenerationTables) => [generation.id, generation.adopted, shared.created.length > 0]
    expect([seen(first), seen(second)]).toEqual([
      [id, false, true],
      [id, true, false],
    ])
    expect([...second.generation.programs.keys()].sort()).toEqual([...first.generation.programs.keys()].sort())
    expect(second.shared.adopted).toContain('np_ct')
  })

  test('another is loaded beside the first, which goes when others are dropped', async () => {
    const { generations } = setup()
    using first = await generations.load(PLAIN)
    using second = await generations.load(DSR)
    const [before, after] = [first.generation.id, second.generation.id]
    expect([...generations.list()].sort()).toEqual([before, after].sort())
    expect(generations.dropOthers(after)).toEqual([before])
    expect(generations.list()).toEqual([after])
  })

  test('a refusal leaves what is there', async () => {
    const { generations, refuse } = setup()
    using first = await generations.load(PLAIN)
    refuse()
    await expect(generations.load(LARGER)).rejects.toThrow()
    expect([generations.list(), generations.flowTableSize()]).toEqual([[first.generation.id], SIZES.conntrack])
  })

  test('a map and a program that have lost their pins get them again', async () => {
    const { generations, unpin } = setup()
    using first = await generations.load(PLAIN)
    unpin()
    expect([generations.repin(first), generations.repin(first)]).toEqual([['map np_ct', 'program tc-np_tail'], []])
  })
}
