// SPDX-License-Identifier: Apache-2.0
/** Sections of a little-endian 64-bit ELF file, for tests that look into compiled objects without libbpf.
 * Layer: test. */

/** Name → bytes. Relocations are not applied. */
export function elfSections(file: Buffer): Map<string, Buffer> {
  const start = Number(file.readBigUInt64LE(0x28))
  const [size, count, namesAt] = [file.readUInt16LE(0x3a), file.readUInt16LE(0x3c), file.readUInt16LE(0x3e)]
  const header = (index: number): Buffer => file.subarray(start + index * size, start + (index + 1) * size)
  const content = (of: Buffer): Buffer =>
    file.subarray(Number(of.readBigUInt64LE(0x18)), Number(of.readBigUInt64LE(0x18) + of.readBigUInt64LE(0x20)))
  const names = content(header(namesAt))
  const sections = new Map<string, Buffer>()
  for (let index = 0; index < count; index++) {
    const at = header(index).readUInt32LE(0)
    sections.set(names.toString('latin1', at, names.indexOf(0, at)), content(header(index)))
  }
  return sections
}
