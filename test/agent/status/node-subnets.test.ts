// SPDX-License-Identifier: Apache-2.0
import { beforeEach, expect, test } from 'vitest'
import { parseAddr, parseCidr, type Cidr } from '#lib/base/ip.ts'
import { NodeSubnets, subnetsOf } from '#agent/status/node-subnets.ts'

const RUNNING = new AbortController().signal
/** "192.0.2.9/24" */
const held = (...texts: readonly string[]): readonly Cidr[] =>
  texts.map((text) => {
    const [addr = '', bits] = text.split('/')
    return { addr: parseAddr(addr), bits: Number(bits) }
  })
const DEVICES = held('192.0.2.9/24', '2001:db8::9/64', '198.51.100.9/25')

test("prefixes of the node's addresses", () => {
  const of = (...addresses: readonly string[]) => subnetsOf(addresses.map(parseAddr), DEVICES)
  expect(of('2001:db8::9', '192.0.2.9')).toEqual(['192.0.2.0/24', '2001:db8::/64'])
  expect(of('198.51.100.9')).toEqual(['198.51.100.0/25'])
  expect(of('192.0.2.10')).toEqual([])
})

const written: unknown[] = []
let devices: readonly Cidr[] | undefined
let announced: readonly Cidr[] = []
const subject = (): NodeSubnets =>
  new NodeSubnets({
    api: {
      patch: (named, patch) => {
        written.push([named.name, patch])
        return Promise.resolve({ ...named, metadata: { name: named.name } })
      },
    },
    node: 'n1',
    self: () => ({ addresses: [parseAddr('192.0.2.9')], subnets: announced }),
    held: () => devices,
  })

async function tell(one: NodeSubnets, now: number): Promise<number> {
  const due = one.due(now)
  for (const { write } of due) await write(RUNNING)
  return due.length
}

beforeEach(() => {
  written.length = 0
  devices = DEVICES
  announced = []
})

test('are written once, and again when nobody heard or somebody says otherwise', async () => {
  const one = subject()
  expect([await tell(one, 0), await tell(one, 9_999), await tell(one, 10_000)]).toEqual([1, 0, 1])
  expect(written[0]).toEqual(['n1', { metadata: { annotations: { 'netplane.io/subnets': '192.0.2.0/24' } } }])
  announced = [parseCidr('192.0.2.0/24')]
  expect(await tell(one, 60_000)).toBe(0)
  announced = [parseCidr('0.0.0.0/0')]
  expect(await tell(one, 60_001)).toBe(1)
})

test('other devices are other prefixes; without any of a family, and before they are known, what was said stays', async () => {
  const one = subject()
  announced = [parseCidr('192.0.2.0/24')]
  devices = undefined
  expect(await tell(one, 0)).toBe(0)
  devices = []
  expect(await tell(one, 1)).toBe(0)
  devices = held('192.0.2.9/23')
  announced = [parseCidr('192.0.2.0/24'), parseCidr('2001:db8::/64')]
  expect(await tell(one, 2)).toBe(1)
  expect(written).toEqual([['n1', { metadata: { annotations: { 'netplane.io/subnets': '192.0.2.0/23,2001:db8::/64' } } }]])
})
