// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { bundleOf } from '../../../cli/bundle/archive.ts'
import { collect, isMissing, type Part } from '../../../cli/bundle/collect.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const BOUNDS = { partMs: 50, wholeMs: 60_000, partBytes: 10 }

function part(name: string, read: Part['read']): Part {
  return { name, about: `about ${name}`, read }
}

test('what fails, hangs or is too long keeps no other back', async () => {
  const parts = [
    part('a.txt', () => 'fine\n'),
    part('b.txt', () => {
      throw new Error('no such thing, password=hunter22')
    }),
    part('c.txt', () => new Promise<string>(() => undefined)),
    part('d.txt', () => Promise.resolve('0123456789abc')),
    part('log/e.txt', () => '0123456789abc'),
    part('f.txt', () => ''),
  ]
  const collected = await collect(parts, BOUNDS, systemClock)
  expect(collected.map(({ name, text, remark }) => [name, text, remark])).toEqual([
    ['a.txt', 'fine\n', ''],
    ['b.txt', '', 'not read: no such thing, password="[left out]"'],
    ['c.txt', '', 'not read: not within 50 ms'],
    ['d.txt', '0123456789', 'the first 10 of 13 bytes'],
    ['log/e.txt', '3456789abc', 'the last 10 of 13 bytes'],
    ['f.txt', '', 'empty'],
  ])
  expect(collected.filter(isMissing).map(({ name }) => name)).toEqual(['b.txt', 'c.txt'])
})

test('the whole has an end', async () => {
  const clock = new FakeClock()
  const slow = (name: string): Part =>
    part(name, () => {
      clock.advance(700)
      return name
    })
  const collected = await collect(['a', 'b', 'c'].map(slow), { ...BOUNDS, partMs: 10_000, wholeMs: 1000 }, clock)
  expect(collected.map(({ remark }) => remark)).toEqual(['', 'not read: not within 300 ms', 'not read: there was no time left'])
})

test('the index says what is there, and why the rest is not', () => {
  const collected = [
    { name: 'net/links.txt', about: 'interfaces', text: 'eth0\n', remark: '' },
    { name: 'maps/maps.json', about: 'pinned maps', text: '', remark: 'not read: gone' },
  ]
  const about = { at: new Date(0), heading: ['Of a node.'] }
  const archive = bundleOf(collected, about)
  expect(bundleOf(collected, about)).toEqual(archive)
  expect(execFileSync('tar', ['-tf', '-'], { input: archive, encoding: 'utf8' })).toBe(
    'netplane-bundle/README.txt\nnetplane-bundle/net/links.txt\n',
  )
  const readme = execFileSync('tar', ['-xOf', '-', 'netplane-bundle/README.txt'], { input: archive, encoding: 'utf8' })
  expect(readme).toMatch(/^Of a node\.\n\n/)
  expect(readme).toContain('net/links.txt   interfaces [5 bytes]\nmaps/maps.json  pinned maps -- not read: gone\n')
})
