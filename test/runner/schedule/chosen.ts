// SPDX-License-Identifier: Apache-2.0
/** Which stages a run is asked for by its words. Layer: test (pure). */
import { isPart, PARTS, type PartName } from '../outside/parts.ts'
import type { Stage } from '../stages.ts'

export interface Chosen {
  readonly chosen: readonly Stage[]
  /** undefined: the run is of no single part */
  readonly part?: PartName
}

/** Without words the stages of the gate; by "all" every stage; by "part NAME" the stages of the part; else stages by
 * name, and of these the test files that are named. Throws where a word names none of them. */
export function chosenOf(stages: readonly Stage[], words: readonly string[]): Chosen {
  const [first, second = ''] = words
  if (first === undefined) return { chosen: stages.filter(({ part }) => part === undefined) }
  if (first === 'all' && words.length === 1) return { chosen: stages }
  if (first === 'part') {
    if (!isPart(second)) throw new Error(`no such part; there are ${PARTS.join(', ')}`)
    return { chosen: stages.filter(({ part }) => part === second), part: second }
  }
  const files = words.filter((word) => word.includes('/'))
  const names = words.filter((word) => !word.includes('/'))
  const chosen = stages.filter(({ name }) => names.includes(name))
  if (chosen.length !== names.length || names.length === 0)
    throw new Error(`no such stage; there are ${stages.map(({ name }) => name).join(', ')}`)
  const stray = files.find((file) => !chosen.some((stage) => stage.files?.names.includes(file) ?? true))
  if (stray !== undefined) throw new Error(`${stray} is a file of none of these stages`)
  return { chosen: files.length === 0 ? chosen : chosen.map((stage) => ofFiles(stage, files)) }
}

/** The stage with these of its files, each by itself. Throws where it runs no single file. */
function ofFiles(stage: Stage, files: readonly string[]): Stage {
  const { files: own, ...rest } = stage
  const names = own === undefined ? files : files.filter((file) => own.names.includes(file))
  const parts = names.map((file) => {
    const part = stage.again?.(file)
    if (part === undefined) throw new Error(`${stage.name} runs no file by itself`)
    return part
  })
  return { ...rest, parts }
}
