// SPDX-License-Identifier: Apache-2.0
/** Blocks of addresses. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { addressOf, assign, assignFixed, emptyBlock, release } from '#lib/ipam/block.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'
import { addrAt, blockAt, indexOf, isNetworkAddress, rangeSize } from '#lib/base/range.ts'

const REST = { restMs: 1000 }

function holder(pod: string, containerId = pod): Holder {
  return { namespace: 'default', pod, containerId }
}

function give(
  block: IPBlock,
  pod: string,
  more: { readonly now?: number; readonly hurry?: boolean; readonly inUse?: ReadonlySet<Addr>; readonly within?: Cidr } = {},
) {
  return assign(block, { ...REST, now: 0, ...more, holder: holder(pod) })
}

function addr(given: ReturnType<typeof give>): string | undefined {
  return given && formatAddr(given.addr)
}

const PAIR = emptyBlock(parseCidr('10.0.0.4/31'), 'n1')

test('only a part of a block is given', () => {
  const within = parseCidr('10.0.0.5/32')
  const first = give(PAIR, 'a', { within })
  expect(addr(first)).toBe('10.0.0.5')
  expect(first && give(first.block, 'b', { within })).toBeUndefined()
  // what one has beside it is not given again
  const beside = give(PAIR, 'a')
  expect(beside && addr(give(beside.block, 'a', { within }))).toBe('10.0.0.5')
})

describe('ranges', () => {
  test.each([
    ['10.0.1.0/24', 255, '10.0.1.255'],
    ['10.0.1.0/32', 0, '10.0.1.0'],
    ['fd00::/64', 65535, 'fd00::ffff'],
    ['fd00::ff00/120', 255, 'fd00::ffff'],
  ])('%s has %d: %s', (cidr, index, text) => {
    expect(formatAddr(addrAt(parseCidr(cidr), index))).toBe(text)
    expect(indexOf(parseCidr(cidr), parseAddr(text))).toBe(index)
    expect(rangeSize(parseCidr(cidr))).toBe(index + 1)
  })

  test('what is outside, or too far inside, has no number', () => {
    expect(indexOf(parseCidr('10.0.1.0/24'), parseAddr('10.0.2.0'))).toBeUndefined()
    expect(indexOf(parseCidr('fd00::/64'), parseAddr('fd00::1:0'))).toBeUndefined()
  })

  test('blocks are numbered', () => {
    expect(blockAt(parseCidr('10.0.0.0/16'), { bits: 26, number: 5 })).toEqual(parseCidr('10.0.1.64/26'))
    expect(blockAt(parseCidr('fd00::/48'), { bits: 122, number: 1048575 })).toEqual(parseCidr('fd00::3ff:ffc0/122'))
  })
})

describe('addresses of a block', () => {
  test('are given one after the other, the same to a holder that asks again, until none is left', () => {
    const a = give(PAIR, 'a')
    const b = a && give(a.block, 'b')
    expect([addr(a), addr(b)]).toEqual(['10.0.0.4', '10.0.0.5'])
    expect(b && addr(give(b.block, 'a'))).toBe('10.0.0.4')
    expect(b && give(b.block, 'c')).toBeUndefined()
  })

  test('a pod that is made again is another holder', () => {
    const first = assign(PAIR, { ...REST, now: 0, holder: holder('a', 'old') })
    expect(first && addr(assign(first.block, { ...REST, now: 0, holder: holder('a', 'new') }))).toBe('10.0.0.5')
  })

  test('that were given back rest, and in a hurry the one that has rested longest is taken', () => {
    let block = PAIR
    for (const pod of ['a', 'b']) block = give(block, pod)?.block ?? block
    block = release(block, ({ pod }) => pod === 'b', 100)
    block = release(block, ({ pod }) => pod === 'a', 200)
    expect(give(block, 'c', { now: 300 })).toBeUndefined()
    expect(addr(give(block, 'c', { now: 300, hurry: true }))).toBe('10.0.0.5')
    expect(addr(give(block, 'c', { now: 1150 }))).toBe('10.0.0.5')
    expect(addr(give(block, 'c', { now: 1250 }))).toBe('10.0.0.4')
    // the clock was set back
    expect(addr(give(block, 'c', { now: 50 }))).toBe('10.0.0.4')
  })

  test('that are in use anyway are passed over, in a hurry as well', () => {
    expect(addr(give(PAIR, 'a', { inUse: new Set([parseAddr('10.0.0.4')]), hurry: true }))).toBe('10.0.0.5')
  })

  test('one that is asked for is given unless another has it', () => {
    const fixed = assignFixed(PAIR, parseAddr('10.0.0.5'), holder('a'))
    expect(fixed && formatAddr(fixed.addr)).toBe('10.0.0.5')
    expect(fixed && assignFixed(fixed.block, parseAddr('10.0.0.5'), holder('a'))).toBeDefined()
    expect(fixed && assignFixed(fixed.block, parseAddr('10.0.0.5'), holder('b'))).toBeUndefined()
    expect(assignFixed(PAIR, parseAddr('10.0.0.6'), holder('a'))).toBeUndefined()
  })

  test('a holder without an address gives nothing back', () => {
    expect(release(PAIR, () => true, 0)).toBe(PAIR)
  })
})

test.each([
  ['10.1.0.0', '10.1.0.0/16', true],
  ['10.1.7.0', '10.1.0.0/16', true],
  ['10.1.7.255', '10.1.0.0/16', true],
  ['10.1.7.64', '10.1.0.0/16', false],
  ['10.1.7.64', '10.1.7.64/26', true],
  ['10.1.7.127', '10.1.7.64/26', true],
  ['10.1.7.65', '10.1.7.64/26', false],
  ['10.1.7.0', '10.1.7.0/31', false],
  ['10.1.7.255', '10.1.7.255/32', false],
  ['fd00::', 'fd00::/48', true],
  ['fd00:0:0:7::', 'fd00::/48', true],
  ['fd00:0:0:7::1', 'fd00::/48', false],
  ['fd00:0:0:7::ff', 'fd00::/48', false],
  ['fd00::1:0', 'fd00::1:0/112', true],
  ['fd00::', 'fd00::/127', false],
])('%s of %s is an address of a network: %s', (addr, range, expected) => {
  expect(isNetworkAddress(parseAddr(addr), parseCidr(range))).toBe(expected)
})

test('whatever is taken and given back, no address has two holders, and each holder one', () => {
  const step = fc.record({
    pod: fc.integer({ min: 0, max: 9 }),
    take: fc.boolean(),
    hurry: fc.boolean(),
    later: fc.integer({ min: 0, max: 700 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let block = emptyBlock(parseCidr('10.0.0.0/29'), 'n1')
      const has = new Map<string, Addr>()
      let now = 0
      for (const { pod, take, hurry, later } of steps) {
        now += later
        const name = `p${pod}`
        if (take) {
          const given = give(block, name, { now, hurry })
          if (given === undefined) continue
          expect(has.get(name) ?? given.addr).toBe(given.addr)
          has.set(name, given.addr)
          block = given.block
        } else {
          block = release(block, (one) => one.pod === name, now)
          has.delete(name)
        }
        expect(new Set(has.values()).size).toBe(has.size)
        expect(block.held.size).toBe(has.size)
        for (const [one, address] of has) expect(addressOf(block, holder(one))).toBe(address)
      }
    }),
  )
})
