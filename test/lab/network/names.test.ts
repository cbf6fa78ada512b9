// SPDX-License-Identifier: Apache-2.0
/** Names in a lab. */
import { describe, expect, test } from 'vitest'
import { bridgePort, cgroupName, macOf, netnsName, parseLabName, parseTarget } from '../../../lab/network/names.ts'

describe('lab names', () => {
  test.each(['lab', 'a1', 'x'.repeat(16)])('%s is one', (name) => {
    expect(parseLabName(name)).toBe(name)
  })
  test.each(['', 'a-b', 'A', '../x', 'x'.repeat(17)])('%j is none', (name) => {
    expect(() => parseLabName(name)).toThrow('not a lab name')
  })
})

describe('places', () => {
  test.each([
    ['client', 'nplab-l-client', '_client'],
    ['far', 'nplab-l-far', '_far'],
    ['fabric', 'nplab-l-fabric', '_fabric'],
    ['node/a.example', 'nplab-l-node-a.example', 'a.example/exec'],
    ['shop/web-1', 'nplab-l-pod-shop.web-1', 'n/pods/shop.web-1'],
  ])('%s', (text, netns, cgroup) => {
    const target = parseTarget(text)
    expect(netnsName('l', target)).toBe(netns)
    expect(cgroupName(target, 'n')).toBe(cgroup)
  })
  test('a bare pod is in namespace default', () => {
    expect(parseTarget('web')).toEqual({ kind: 'pod', pod: 'default/web' })
  })
  test.each(['', '/', 'a/', '/a', 'a/b/c'])('%j is none', (text) => {
    expect(() => parseTarget(text)).toThrow('not a place')
  })
})

test('bridge ports fit an interface name and stay apart', () => {
  expect(bridgePort('p', 'node-a')).toBe('p-node-a')
  const long = ['a-node-with-a-long-name-1', 'a-node-with-a-long-name-2'].map((name) => bridgePort('p', name))
  expect(new Set(long).size).toBe(2)
  expect(long.map((name) => name.length)).toEqual([15, 15])
})

test('a MAC is local, unicast and always the same', () => {
  expect(macOf('ns', 'eth0')).toMatch(/^02(:[0-9a-f]{2}){5}$/)
  expect(macOf('ns', 'eth0')).toBe(macOf('ns', 'eth0'))
  expect(macOf('ns', 'eth0')).not.toBe(macOf('ns', 'host'))
})
