// SPDX-License-Identifier: Apache-2.0
/** The functions of a BPF object file as instructions, read without libbpf. Layer: test. */
import { readFileSync } from 'node:fs'

export interface Instruction {
  readonly opcode: number
  readonly dst: number
  readonly src: number
  readonly offset: number
  readonly immediate: number
}

export interface Code {
  readonly name: string
  readonly instructions: readonly Instruction[]
  /** names of the object's functions that it calls, each once */
  readonly calls: readonly string[]
  /** the kernel enters there: it is in a section of programs, not of functions that these call */
  readonly isProgram: boolean
}

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  readonly link: number
  /** of relocations: the number of the section that they are in */
  readonly info: number
  readonly isText: boolean
}

interface Place {
  /** number of a section */
  readonly section: number
  /** bytes from its begin */
  readonly offset: number
}

interface Symbol extends Place {
  readonly name: string
  readonly size: number
  readonly isFunction: boolean
}

const SYMTAB = 2
const RELOCATIONS = 9
const FUNCTION = 2
const SYMBOL_BYTES = 24
const RELOCATION_BYTES = 16
const INSTRUCTION_BYTES = 8
const CALL = 0x85
/** src of a call of a function; of a helper it is 0 */
const OF_FUNCTION = 1

/** 64-bit, little-endian. */
export function functionsOf(path: string): Code[] {
  const file = readFileSync(path)
  const sections = sectionsOf(file)
  const symbols = symbolsOf(file, sections)
  const functions = symbols.filter(({ isFunction }) => isFunction)
  const relocated = relocationsOf(file, sections, symbols)
  const nameAt = ({ section, offset }: Place): string | undefined =>
    functions.find((one) => one.section === section && one.offset === offset)?.name
  return functions.flatMap(({ name, section, offset, size }): Code[] => {
    const of = sections[section]
    if (of === undefined) return []
    const begin = of.offset + offset
    const instructions = instructionsOf(file.subarray(begin, begin + size))
    const calls = instructions.flatMap(({ opcode, src, immediate }, at) => {
      if (opcode !== CALL || src !== OF_FUNCTION) return []
      const place = { section, offset: offset + at * INSTRUCTION_BYTES }
      // counted from its symbol, or from this instruction
      const from = relocated.get(keyOf(place)) ?? place
      return nameAt({ section: from.section, offset: from.offset + (immediate + 1) * INSTRUCTION_BYTES }) ?? []
    })
    return [{ name, instructions, calls: [...new Set(calls)], isProgram: !of.isText }]
  })
}

function keyOf({ section, offset }: Place): string {
  return `${section} ${offset}`
}

function symbolsOf(file: Buffer, sections: readonly Section[]): readonly Symbol[] {
  const table = sections.find(({ type }) => type === SYMTAB)
  const names = table === undefined ? undefined : sections[table.link]
  if (table === undefined || names === undefined) throw new Error('the object has no symbols')
  return Array.from({ length: table.size / SYMBOL_BYTES }, (_, index) => {
    const at = table.offset + index * SYMBOL_BYTES
    return {
      name: textAt(file, names.offset + file.readUInt32LE(at)),
      section: file.readUInt16LE(at + 6),
      offset: Number(file.readBigUInt64LE(at + 8)),
      size: Number(file.readBigUInt64LE(at + 16)),
      isFunction: (file.readUInt8(at + 4) & 15) === FUNCTION,
    }
  })
}

/** By {@link keyOf} of what is relocated: where its symbol is. */
function relocationsOf(file: Buffer, sections: readonly Section[], symbols: readonly Symbol[]): ReadonlyMap<string, Place> {
  const found = new Map<string, Place>()
  for (const { offset, size, info } of sections.filter(({ type }) => type === RELOCATIONS))
    for (let at = offset; at < offset + size; at += RELOCATION_BYTES) {
      const symbol = symbols[file.readUInt32LE(at + 12)]
      if (symbol !== undefined) found.set(keyOf({ section: info, offset: Number(file.readBigUInt64LE(at)) }), symbol)
    }
  return found
}

function textAt(file: Buffer, start: number): string {
  return file.toString('latin1', start, file.indexOf(0, start))
}

function sectionsOf(file: Buffer): Section[] {
  const [table, bytes, count] = [Number(file.readBigUInt64LE(40)), file.readUInt16LE(58), file.readUInt16LE(60)]
  const header = (index: number): number => table + index * bytes
  const names = Number(file.readBigUInt64LE(header(file.readUInt16LE(62)) + 24))
  return Array.from({ length: count }, (_, index) => {
    const at = header(index)
    return {
      type: file.readUInt32LE(at + 4),
      offset: Number(file.readBigUInt64LE(at + 24)),
      size: Number(file.readBigUInt64LE(at + 32)),
      link: file.readUInt32LE(at + 40),
      info: file.readUInt32LE(at + 44),
      isText: textAt(file, names + file.readUInt32LE(at)) === '.text',
    }
  })
}

function instructionsOf(bytes: Buffer): Instruction[] {
  return Array.from({ length: bytes.length / INSTRUCTION_BYTES }, (_, index) => {
    const at = index * INSTRUCTION_BYTES
    const registers = bytes.readUInt8(at + 1)
    return {
      opcode: bytes.readUInt8(at),
      dst: registers & 15,
      src: registers >> 4,
      offset: bytes.readInt16LE(at + 2),
      immediate: bytes.readInt32LE(at + 4),
    }
  })
}
