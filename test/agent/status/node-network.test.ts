// SPDX-License-Identifier: Apache-2.0
/** What a node says of itself to the others. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { formatCidr, parseAddr, parseCidr, type Cidr } from '#lib/base/ip.ts'
import type { NodeNetwork } from '#lib/model/node.ts'
import { OwnNetwork, subnetsOf } from '#agent/status/node-network.ts'

const RUNNING = new AbortController().signal
/** "192.0.2.9/24" */
const held = (...texts: readonly string[]): readonly Cidr[] =>
  texts.map((text) => {
    const [addr = '', bits] = text.split('/')
    return { addr: parseAddr(addr), bits: Number(bits) }
  })
const DEVICES = held('192.0.2.9/24', '2001:db8::9/64', '198.51.100.9/25')
const ZONE = new Map([['zone', 'east']])

test("prefixes of the node's addresses", () => {
  const of = (...addresses: readonly string[]) => subnetsOf(addresses.map(parseAddr), DEVICES).map(formatCidr)
  expect(of('2001:db8::9', '192.0.2.9')).toEqual(['192.0.2.0/24', '2001:db8::/64'])
  expect(of('198.51.100.9')).toEqual(['198.51.100.0/25'])
  expect(of('192.0.2.10')).toEqual([])
})

const written: unknown[] = []
let devices: readonly Cidr[] | undefined
let said: Omit<NodeNetwork, 'blocks'> | undefined
let labels: ReadonlyMap<string, string>
let uid: string | undefined

function subject(): OwnNetwork {
  return new OwnNetwork({
    api: {
      list: () => Promise.resolve(uid === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid } }]),
      apply: ({ metadata, spec }, options) => {
        written.push({ labels: metadata.labels, owner: metadata['ownerReferences'], spec, by: options?.fieldManager })
        return Promise.resolve({ apiVersion: '', kind: '', metadata })
      },
    },
    node: 'n1',
    self: () => ({ addresses: [parseAddr('192.0.2.9')], podCIDRs: [parseCidr('10.0.1.0/24')], labels }),
    said: () => said,
    held: () => devices,
  })
}

function heard(...subnets: readonly string[]): Omit<NodeNetwork, 'blocks'> {
  const addresses = [parseAddr('192.0.2.9')]
  return {
    ...{ kind: 'NodeNetwork', namespace: '', name: 'n1', addresses, podCIDRs: [parseCidr('10.0.1.0/24')] },
    ...{ labels: ZONE, subnets: subnets.map(parseCidr) },
  }
}

async function tell(one: OwnNetwork, now: number): Promise<number> {
  const due = one.due(now)
  for (const { write } of due) await write(RUNNING)
  return due.length
}

beforeEach(() => {
  written.length = 0
  devices = DEVICES
  said = undefined
  labels = ZONE
  uid = 'u1'
})

test('is written once, and again when nobody heard, somebody says otherwise, or forgot', async () => {
  const one = subject()
  expect([await tell(one, 0), await tell(one, 9_999), await tell(one, 10_000)]).toEqual([1, 0, 1])
  expect(written[0]).toEqual({
    labels: { zone: 'east' },
    owner: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' }],
    spec: { addresses: ['192.0.2.9'], podCIDRs: ['10.0.1.0/24'], subnets: ['192.0.2.0/24'] },
    by: 'netplane-agent',
  })
  said = heard('192.0.2.0/24')
  expect(await tell(one, 60_000)).toBe(0)
  said = heard('0.0.0.0/0')
  expect(await tell(one, 60_001)).toBe(1)
  said = undefined
  expect(await tell(one, 80_000)).toBe(1)
})

test('other labels are others to all', async () => {
  const one = subject()
  said = heard('192.0.2.0/24')
  labels = new Map([['zone', 'west']])
  expect(await tell(one, 0)).toBe(1)
  expect(written).toMatchObject([{ labels: { zone: 'west' } }])
})

test('other devices are other prefixes; without any of a family, and before they are known, what was said stays', async () => {
  const one = subject()
  said = heard('192.0.2.0/24')
  devices = undefined
  expect(await tell(one, 0)).toBe(0)
  devices = []
  expect(await tell(one, 1)).toBe(0)
  devices = held('192.0.2.9/23')
  said = heard('192.0.2.0/24', '2001:db8::/64')
  expect(await tell(one, 2)).toBe(1)
  expect(written).toMatchObject([{ spec: { subnets: ['192.0.2.0/23', '2001:db8::/64'] } }])
})

test('of a node that the cluster has not nothing is said', async () => {
  const one = subject()
  uid = undefined
  await tell(one, 0)
  expect(written).toEqual([])
  uid = 'u2'
  await tell(one, 10_000)
  expect(written).toMatchObject([{ owner: [{ uid: 'u2' }] }])
})
