// SPDX-License-Identifier: Apache-2.0
/** Which addresses count as leaked, missing or given twice. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { addressFaults, Uniqueness } from '../../../soak/pods/addresses.ts'
import type { Made } from '../../../soak/pods/kubelet.ts'

const made = (pod: string, ...addresses: string[]): Made => ({
  ...{ containerId: `${pod}-0`, namespace: 'default', pod, state: 'ready', result: {}, addresses },
})
const block = (cidr: string, held: Readonly<Record<number, string>>): IPBlock => ({
  cidr: parseCidr(cidr),
  node: 'a',
  held: new Map(Object.entries(held).map(([index, pod]) => [Number(index), { containerId: `${pod}-0`, namespace: 'default', pod }])),
  freed: new Map(),
})
const peace = {
  made: new Map([['a', [made('x', '10.0.0.1', 'fd00::2')]]]),
  blocks: [block('10.0.0.0/28', { 1: 'x' }), block('fd00::/124', { 2: 'x' })],
  told: new Map([['x', ['10.0.0.1', 'fd00::2']]]),
}

test('there is no fault where blocks, pods and runtimes agree', () => {
  expect(addressFaults(peace)).toEqual([])
})

test('an address held by a pod that is gone is a fault, and so is one used and not held', () => {
  const blocks = [block('10.0.0.0/28', { 1: 'x', 3: 'y' })]
  expect(addressFaults({ ...peace, blocks })).toEqual([
    'leaked: a: 10.0.0.3 of default/y, y-0',
    'used, but in no block: a: fd00::2 of default/x, x-0',
  ])
})

test('two pods with one address are a fault', () => {
  const two = new Map([
    ['a', [made('x', '10.0.0.1')]],
    ['b', [made('y', '10.0.0.1')]],
  ] as const)
  expect(addressFaults({ ...peace, made: two })).toContain('10.0.0.1: twice')
})

test('a pod whose status says otherwise is a fault, and so is one that has no sandbox', () => {
  const told = new Map([
    ['x', ['10.0.0.9']],
    ['z', []],
  ] as [string, string[]][])
  expect(addressFaults({ ...peace, told })).toEqual(['x: status says 10.0.0.9, the plugin 10.0.0.1,fd00::2', 'z: has no sandbox'])
})

test('an address that another pod has is a fault at once; not that of a pod whose second sandbox takes the place of its first', () => {
  const seen = new Uniqueness()
  const first = made('x', '10.0.0.1')
  seen.note(made('y', '10.0.0.2'), [first])
  seen.note({ ...first, containerId: 'x-1' }, [first])
  seen.note(made('y', '10.0.0.1'), [{ ...first, state: 'unknown' }])
  expect(seen.faults).toEqual([])
  seen.note(made('y', '10.0.0.1'), [first])
  expect(seen.faults).toEqual(['10.0.0.1 is that of y, and of x'])
})
