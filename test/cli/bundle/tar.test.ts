// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { tarOf } from '../../../cli/bundle/tar.ts'

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

test('a name of more than 100 bytes is cut at a folder, and one that cannot be is refused', () => {
  const name = `${'a'.repeat(60)}/${'b'.repeat(63)}/${'c'.repeat(90)}`
  const archive = tarOf([{ name, bytes: Buffer.from('deep') }], 0)
  expect(execFileSync('tar', ['-tf', '-'], { input: archive, encoding: 'utf8' })).toBe(`${name}\n`)
  expect(execFileSync('tar', ['-xOf', '-', name], { input: archive, encoding: 'utf8' })).toBe('deep')
  expect(() => tarOf([{ name: 'd'.repeat(101), bytes: Buffer.alloc(0) }], 0)).toThrow('too long a name')
})
