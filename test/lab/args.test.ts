// SPDX-License-Identifier: Apache-2.0
/** Command line arguments. */
import { describe, expect, test } from 'vitest'
import { count, list, readArgs, words } from '../../lab/args.ts'

describe('arguments', () => {
  test('a place, and a command with options of its own', () => {
    const { values, positionals, command } = readArgs(['web', '--name', 'x', '--', 'ls', '-l', '--', 'y'], {})
    expect([values.text('name'), values.flag('json'), positionals, command]).toEqual(['x', false, ['web'], ['ls', '-l', '--', 'y']])
  })
  test('-f is --follow', () => {
    expect(readArgs(['-f', 'a'], { follow: 'flag' }).values.flag('follow')).toBe(true)
  })
  test('what is not known is named', () => {
    expect(() => readArgs(['--nope'], {})).toThrow("Unknown option '--nope'")
  })
})

test('lists are read', () => {
  expect([list(undefined), list('a,b,'), list('')]).toEqual([undefined, ['a', 'b'], []])
})

test('numbers are read, or refused', () => {
  expect([count('--mtu', undefined), count('--mtu', '1400')]).toEqual([undefined, 1400])
  for (const text of ['0', '-1', '1e3', 'x', '']) expect(() => count('--mtu', text)).toThrow('--mtu: not a positive whole number')
})

test('command lines are read', () => {
  expect([words(undefined), words(' node  agent.js '), words('["a b", "c"]')]).toEqual([undefined, ['node', 'agent.js'], ['a b', 'c']])
})
