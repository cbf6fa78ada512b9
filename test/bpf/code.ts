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
}

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  readonly link: number
}

const SYMTAB = 2
const FUNCTION = 2
const SYMBOL_BYTES = 24

/** 64-bit, little-endian. */
export function functionsOf(path: string): Code[] {
  const file = readFileSync(path)
  const sections = sectionsOf(file)
  const symbols = sections.find(({ type }) => type === SYMTAB)
  const names = symbols === undefined ? undefined : sections[symbols.link]
  if (symbols === undefined || names === undefined) throw new Error(`${path} has no symbols`)
  const found: Code[] = []
  for (let at = symbols.offset; at < symbols.offset + symbols.size; at += SYMBOL_BYTES) {
    const section = sections[file.readUInt16LE(at + 6)]
    if ((file.readUInt8(at + 4) & 15) !== FUNCTION || section === undefined) continue
    const start = names.offset + file.readUInt32LE(at)
    const begin = section.offset + Number(file.readBigUInt64LE(at + 8))
    found.push({
      name: file.toString('latin1', start, file.indexOf(0, start)),
      instructions: instructionsOf(file.subarray(begin, begin + Number(file.readBigUInt64LE(at + 16)))),
    })
  }
  return found
}

function sectionsOf(file: Buffer): Section[] {
  const [table, bytes, count] = [Number(file.readBigUInt64LE(40)), file.readUInt16LE(58), file.readUInt16LE(60)]
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * bytes
    return {
      type: file.readUInt32LE(at + 4),
      offset: Number(file.readBigUInt64LE(at + 24)),
      size: Number(file.readBigUInt64LE(at + 32)),
      link: file.readUInt32LE(at + 40),
    }
  })
}

function instructionsOf(bytes: Buffer): Instruction[] {
  return Array.from({ length: bytes.length / 8 }, (_, index) => {
    const at = index * 8
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
