// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { tarOf } from '../../../cli/node/tar.ts'

const FILES = [
  { name: 'b/README.txt', bytes: Buffer.from('hello\n') },
  { name: 'b/empty', bytes: Buffer.alloc(0) },
  { name: 'b/even', bytes: Buffer.alloc(1024, 'x') },
]

test('tar lists and unpacks what was put in, in its order', () => {
  const archive = tarOf(FILES, 1_700_000_000)
  const options = { input: archive, encoding: 'utf8', env: { TZ: 'UTC', PATH: process.env['PATH'] } } as const
  const listing = execFileSync('tar', ['-tvf', '-'], options)
  expect(listing.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    '-rw-r--r-- root/root 6 2023-11-14 22:13 b/README.txt',
    '-rw-r--r-- root/root 0 2023-11-14 22:13 b/empty',
    '-rw-r--r-- root/root 1024 2023-11-14 22:13 b/even',
    '',
  ])
  expect(execFileSync('tar', ['-xOf', '-', 'b/README.txt', 'b/even'], options)).toBe(`hello\n${'x'.repeat(1024)}`)
})

test('the same files make the same archive', () => {
  expect(tarOf(FILES, 1.7)).toEqual(tarOf(FILES, 1.2))
})
