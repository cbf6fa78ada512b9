// SPDX-License-Identifier: Apache-2.0
/** What a node says of itself to the others. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { ApiError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { formatCidr, parseAddr, parseCidr, type Addr, type Cidr } from '#lib/base/ip.ts'
import type { NodeInterface } from '#lib/model/node.ts'
import { interfacesOf, OwnNetwork, subnetsOf, type Said } from '#agent/status/node-network.ts'

const RUNNING = new AbortController().signal
/** "192.0.2.9/24" */
const held = (...texts: readonly string[]): readonly Cidr[] =>
  texts.map((text) => {
    const [addr = '', bits] = text.split('/')
    return { addr: parseAddr(addr), bits: Number(bits) }
  })
const DEVICES = held('192.0.2.9/24', '2001:db8::9/64', '198.51.100.9/25')
const ETH0: readonly NodeInterface[] = [{ name: 'eth0', addresses: [parseAddr('192.0.2.9')] }]
const ETH0_RAW = { name: 'eth0', addresses: ['192.0.2.9'] }
const ZONE = new Map([['zone', 'east']])

test("prefixes of the node's addresses", () => {
  const of = (...addresses: readonly string[]) => subnetsOf(addresses.map(parseAddr), DEVICES).map(formatCidr)
  expect(of('2001:db8::9', '192.0.2.9')).toEqual(['192.0.2.0/24', '2001:db8::/64'])
  expect(of('198.51.100.9')).toEqual(['198.51.100.0/25'])
  expect(of('192.0.2.10')).toEqual([])
})

test("devices with the node's own addresses, sorted", () => {
  const device = (name: string, ...addresses: readonly string[]) => ({ name, loopback: name === 'lo', addresses: held(...addresses) })
  const of = [
    device('wlan0', '198.51.100.9/25', 'fe80::9/64'),
    device('lo', '127.0.0.1/8', '192.0.2.99/32'),
    device('eth0', '192.0.2.9/24'),
    device('npl1', 'fe80::1/64'),
    device('vethab', '10.0.0.1/32'),
    device('kube-ipvs0', '10.96.0.1/32'),
  ]
  expect(interfacesOf(of, new Set(['vethab']))).toEqual([
    { name: 'eth0', addresses: [parseAddr('192.0.2.9')] },
    { name: 'wlan0', addresses: [parseAddr('198.51.100.9')] },
  ])
})

/** patches, and what was created */
const written: unknown[] = []
let devices: readonly Cidr[] | undefined
let said: Said | undefined
let addresses: readonly Addr[]
let labels: ReadonlyMap<string, string>
let interfaces: readonly NodeInterface[] | undefined
let uid: string
let takesTunnel: boolean
/** what the server says to the next write */
let refusal: ApiError | undefined

function subject(): OwnNetwork {
  const answer = (metadata: { readonly name: string }): Promise<ApiObject> => {
    const refused = refusal
    refusal = undefined
    return refused === undefined ? Promise.resolve({ apiVersion: '', kind: '', metadata }) : Promise.reject(refused)
  }
  return new OwnNetwork({
    api: {
      create: ({ metadata, spec }) => {
        written.push({ made: spec, owner: metadata['ownerReferences'] })
        return answer(metadata)
      },
      patch: (named, patch) => {
        written.push(patch)
        return answer(named)
      },
    },
    node: 'n1',
    self: () => ({ addresses, podCIDRs: [parseCidr('10.0.1.0/24')], labels, uid }),
    said: () => said,
    held: () => devices,
    interfaces: () => interfaces,
    takesTunnel: () => takesTunnel,
  })
}

function heard(...subnets: readonly string[]): Said {
  return {
    ...{ kind: 'NodeNetwork', namespace: '', name: 'n1', addresses, podCIDRs: [parseCidr('10.0.1.0/24')] },
    ...{ labels: ZONE, owner: 'u1', interfaces: ETH0, subnets: subnets.map(parseCidr) },
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
  addresses = [parseAddr('192.0.2.9')]
  labels = ZONE
  interfaces = ETH0
  uid = 'u1'
  takesTunnel = false
  refusal = undefined
})

test('the NodeNetwork is written once, and again while none is heard, when another is heard, or when it is deleted', async () => {
  const one = subject()
  expect([await tell(one, 0), await tell(one, 9_999), await tell(one, 10_000)]).toEqual([1, 0, 1])
  expect(written[0]).toEqual({
    made: {
      addresses: ['192.0.2.9'],
      podCIDRs: ['10.0.1.0/24'],
      subnets: ['192.0.2.0/24'],
      labels: { zone: 'east' },
      interfaces: [ETH0_RAW],
    },
    owner: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' }],
  })
  said = heard('192.0.2.0/24')
  expect(await tell(one, 60_000)).toBe(0)
  said = heard('0.0.0.0/0')
  expect(await tell(one, 60_001)).toBe(1)
  said = heard('192.0.2.0/24')
  expect(await tell(one, 60_002)).toBe(0)
  said = undefined
  expect(await tell(one, 60_003)).toBe(1)
})

test('interfaces are said once they are known, and again when they are others or an older agent has left them out', async () => {
  const one = subject()
  said = heard('192.0.2.0/24')
  interfaces = undefined
  expect(await tell(one, 0)).toBe(0)
  interfaces = []
  expect(await tell(one, 1)).toBe(1)
  expect(written).toMatchObject([{ spec: { interfaces: [] } }])
  const { interfaces: left, ...older } = heard('192.0.2.0/24')
  expect(left).toBe(ETH0)
  said = older
  interfaces = ETH0
  expect(await tell(one, 20_000)).toBe(1)
  expect(written.at(-1)).toMatchObject({ spec: { interfaces: [ETH0_RAW] } })
})

test('ends of the tunnel that an older agent had stay said until our programs take what comes in it', async () => {
  const one = subject()
  said = { ...heard('192.0.2.0/24'), vteps: { v4: '66:00:5e:00:53:01', v6: undefined } }
  expect(await tell(one, 0)).toBe(0)
  labels = new Map()
  expect(await tell(one, 1)).toBe(1)
  expect(written).toMatchObject([{ spec: { vxlanTunnelMACAddr: '66:00:5e:00:53:01' } }])
  labels = ZONE
  takesTunnel = true
  expect(await tell(one, 20_000)).toBe(1)
  expect(written.at(-1)).toMatchObject({ spec: { vxlanTunnelMACAddr: null } })
  said = heard('192.0.2.0/24')
  expect(await tell(one, 20_001)).toBe(0)
})

test('labels are those of the Node: one that it no longer has goes', async () => {
  const one = subject()
  said = heard('192.0.2.0/24')
  labels = new Map([['team', 'a']])
  expect(await tell(one, 0)).toBe(1)
  expect(written).toMatchObject([{ spec: { labels: { team: 'a', zone: null } } }])
})

test('the NodeNetwork of a Node that was created again is written again', async () => {
  const one = subject()
  said = heard('192.0.2.0/24')
  uid = 'u2'
  expect(await tell(one, 0)).toBe(1)
  expect(written).toMatchObject([{ metadata: { ownerReferences: [{ kind: 'Node', uid: 'u2' }] } }])
})

test('one that came meanwhile, or cannot be read, is changed; one that went is made', async () => {
  const one = subject()
  refusal = new ApiError({ status: 409, reason: 'AlreadyExists', message: '' })
  expect(await tell(one, 0)).toBe(1)
  expect(written).toMatchObject([{ made: {} }, { spec: { labels: { zone: 'east' } } }])
  said = heard('0.0.0.0/0')
  refusal = new ApiError({ status: 404, reason: 'NotFound', message: '' })
  expect(await tell(one, 20_000)).toBe(1)
  said = undefined
  expect(await tell(one, 21_000)).toBe(1)
  expect(written.at(-1)).toMatchObject({ made: {} })
})

test('the NodeNetwork is not written where the API server does not know the kind', async () => {
  refusal = new ApiError({ status: 404, reason: 'NotFound', message: '' })
  await expect(tell(subject(), 0)).rejects.toThrow(refusal)
})

test('other devices are other prefixes; without any of a family, and before they are known, the old ones stay', async () => {
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
  // whichever of them is away for a moment
  addresses = ['192.0.2.9', '2001:db8::9'].map(parseAddr)
  devices = held('2001:db8::9/64')
  said = heard('192.0.2.0/24', '2001:db8::/64')
  expect(await tell(one, 3)).toBe(0)
})
