// SPDX-License-Identifier: Apache-2.0
/** native/index.ts explains why there is no addon. Layer: test. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const addon = join('build', 'Release', 'netplane_native.node')

describe('a package whose addon', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'netplane-loader-'))
    mkdirSync(join(folder, 'build', 'Release'), { recursive: true })
    mkdirSync(join(folder, 'native'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    cpSync(join(root, 'native', 'index.ts'), join(folder, 'native', 'index.ts'))
    return () => rmSync(folder, { recursive: true })
  })

  const message = (): string => {
    const script = `import(${JSON.stringify(join(folder, 'native', 'index.ts'))}).then(() => console.log('loaded'), (error) => console.log(error.message))`
    return execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }).trim()
  }

  /** A copy of the real one, with some bytes changed. */
  const altered = (change: (bytes: Buffer) => void): void => {
    const bytes = readFileSync(join(root, addon))
    change(bytes)
    writeFileSync(join(folder, addon), bytes)
  }

  test('is there', () => {
    altered(() => undefined)
    expect(message()).toBe('loaded')
  })

  test('was never built', () => {
    expect(message()).toMatch(/was not found above .*: run "make"/)
  })

  test('is no library', () => {
    writeFileSync(join(folder, addon), 'text '.repeat(1000))
    expect(message()).toMatch(/another machine than this .*: run "make"/)
  })

  test('is for another processor', () => {
    altered((bytes) => bytes.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18))
    expect(message()).toMatch(/another machine than this .*: run "make"/)
  })

  test('needs a library that is missing', () => {
    altered((bytes) => bytes.write('libbpf.so.9', bytes.indexOf('libbpf.so.1'), 'latin1'))
    expect(message()).toContain('libbpf.so.9 is missing: install the Debian package')
  })
})
