// SPDX-License-Identifier: Apache-2.0
/** Writes a list of entries as an uncompressed newc archive: every kernel with initramfs support takes it, and nothing
 * has to be unpacked in an emulated machine. Layer: test. */
import { openSync, closeSync, readFileSync, writeSync } from 'node:fs'
import type { Entry } from './entry.ts'

const MODE_OF = { file: 0o100000, bytes: 0o100000, directory: 0o040000, link: 0o120000, device: 0o020000 } as const

/** Parents must come before what lies in them, as the kernel makes no directories of its own accord. */
export function writeCpio(entries: readonly Entry[], out: string): void {
  const fd = openSync(out, 'w')
  try {
    for (const [index, entry] of entries.entries()) writeRecord(fd, index + 1, entry)
    writeRecord(fd, 0, { kind: 'bytes', path: 'TRAILER!!!', content: new Uint8Array(), mode: 0 })
  } finally {
    closeSync(fd)
  }
}

function writeRecord(fd: number, inode: number, entry: Entry): void {
  const content = contentOf(entry)
  const device = entry.kind === 'device' ? entry : { major: 0, minor: 0 }
  const name = Buffer.from(`${entry.path}\0`)
  const mode = MODE_OF[entry.kind] | modeOf(entry)
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, device.major, device.minor, name.length, 0]
  const header = Buffer.from('070701' + fields.map((n) => n.toString(16).padStart(8, '0')).join(''))
  writeAll(fd, padded(Buffer.concat([header, name])))
  writeAll(fd, padded(content))
}

function contentOf(entry: Entry): Buffer {
  switch (entry.kind) {
    case 'file':
      return readFileSync(entry.source)
    case 'bytes':
      return Buffer.from(entry.content.buffer, entry.content.byteOffset, entry.content.byteLength)
    case 'link':
      return Buffer.from(entry.target)
    case 'directory':
    case 'device':
      return Buffer.alloc(0)
  }
}

function modeOf(entry: Entry): number {
  switch (entry.kind) {
    case 'file':
    case 'bytes':
      return entry.mode
    case 'link':
      return 0o777
    case 'directory':
      return 0o755
    case 'device':
      return 0o666
  }
}

function padded(bytes: Buffer): Buffer {
  const rest = bytes.length % 4
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - rest)])
}

function writeAll(fd: number, bytes: Buffer): void {
  let at = 0
  while (at < bytes.length) at += writeSync(fd, bytes, at)
}
