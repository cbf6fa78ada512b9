// SPDX-License-Identifier: Apache-2.0
/** The archive has the form the kernel reads, parents before children. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { writeCpio } from './cpio.ts'
import { withParents } from './entry.ts'

const dir = mkdtempSync(join(tmpdir(), 'netplane-cpio-'))
afterAll(() => rmSync(dir, { recursive: true }))

/** Name, mode, and contents or device of every record, by the format's own rules. */
function records(bytes: Buffer): string[] {
  const out: string[] = []
  for (let at = 0; at < bytes.length;) {
    const field = (index: number): number => parseInt(bytes.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16)
    expect(bytes.toString('latin1', at, at + 6)).toBe('070701')
    const nameEnd = at + 110 + field(11)
    const from = Math.ceil(nameEnd / 4) * 4
    const to = from + field(6)
    const name = bytes.toString('latin1', at + 110, nameEnd - 1)
    out.push(`${name} ${field(1).toString(8)} ${field(9)}:${field(10)} ${bytes.toString('latin1', from, to)}`.trim())
    at = Math.ceil(to / 4) * 4
  }
  return out
}

test('files, links, devices and the directories they need', () => {
  const out = join(dir, 'archive')
  const content = Buffer.from('hello')
  writeCpio(
    withParents([
      { kind: 'bytes', path: 'a/b/file', content, mode: 0o755 },
      { kind: 'link', path: 'a/link', target: 'b/file' },
      { kind: 'device', path: 'dev/null', major: 1, minor: 3 },
      { kind: 'bytes', path: 'a/link', content, mode: 0o644 },
    ]),
    out,
  )
  expect(records(readFileSync(out))).toEqual([
    'a 40755 0:0',
    'a/b 40755 0:0',
    'a/b/file 100755 0:0 hello',
    'a/link 120777 0:0 b/file',
    'dev 40755 0:0',
    'dev/null 20666 1:3',
    'TRAILER!!! 100000 0:0',
  ])
})
