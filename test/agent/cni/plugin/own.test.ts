// SPDX-License-Identifier: Apache-2.0
/** ADD where Netplane gives the pod its network: what it waits for, and what is left when it fails. Layer: test. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { hostOf, PluginWorld, refusalOf, settle, type Outcome } from './world.ts'

const NOTHING = { saved: [], devices: [], held: [], watched: 0 }
const TIMEOUT_MS = 30_000

let of: PluginWorld
beforeEach(() => {
  of = new PluginWorld()
  of.putPod('a')
})

afterEach(() => {
  of[Symbol.dispose]()
})

/** What the call has answered so far; undefined: nothing. */
async function soFar(call: Promise<Outcome>): Promise<Outcome | undefined> {
  let outcome: Outcome | undefined
  void call.then((answer) => (outcome = answer))
  await settle()
  return outcome
}

describe('ADD', () => {
  test('answers with address, devices and routes once packets can pass', async () => {
    const { status, output } = await of.add({ pod: 'a' })
    expect(status).toBe(0)
    expect(output).toMatchObject({
      cniVersion: '1.0.0',
      interfaces: [{ name: hostOf('a') }, { name: 'eth0', sandbox: '/run/netns/a-1' }],
      ips: [{ address: '10.0.0.1/32', gateway: '169.254.1.1', interface: 1 }],
    })
    expect(of.known('a')).toEqual(['10.0.0.1'])
    expect(of.left()).toEqual({ saved: ['a-1.json'], devices: [hostOf('a')], held: ['a-1'], watched: 0 })
  })

  test('goes a step at a time: address, disk, veth, rows and programs, up; each wakes it, and no time has to pass', async () => {
    of.deletePod('a')
    of.node.announced = false
    of.node.missing = 'a row'
    of.veths.lacks = 'a carrier'
    const { promise, resolve } = Promise.withResolvers<undefined>()
    of.addresses.gate = promise
    const call = of.add({ pod: 'a' })
    const after = async (step: () => void): Promise<unknown> => {
      step()
      await settle()
      return [...of.journal, ...of.saved()]
    }
    expect([
      await after(() => undefined),
      await after(() => of.putPod('a')),
      await after(() => of.change({ announced: true })),
      await after(() => resolve(undefined)),
      await after(() => of.change({ missing: undefined })),
      (await soFar(call))?.status,
      await after(() => {
        of.veths.lacks = undefined
        of.veths.changed.notify()
      }),
      (await soFar(call))?.status,
    ]).toEqual([
      [],
      [],
      [],
      ['assign a-1', 'create a-1', 'a-1.json'],
      ['assign a-1', 'create a-1', 'raise a-1', 'a-1.json'],
      undefined,
      ['assign a-1', 'create a-1', 'raise a-1', 'a-1.json'],
      0,
    ])
    expect([of.clock.now(), of.clock.pending]).toEqual([0, 0])
  })

  test('has the MTU of its list, which is none for IPv6 below 1280: then everything is taken back', async () => {
    expect((await of.add({ pod: 'a' }, { mtu: 576 })).status).toBe(0)
    expect(of.veths.devices.get(hostOf('a'))?.mtu).toBe(576)
    of.putPod('b')
    of.addresses.also = [parseAddr('fd00::1')]
    expect(refusalOf(await of.add({ pod: 'b' }, { mtu: 576 }))).toBe('7: mtu: must be at least 1280 for a pod with an IPv6 address')
    expect(of.left()).toEqual({ saved: ['a-1.json'], devices: [hostOf('a')], held: ['a-1'], watched: 0 })
  })

  test('is on disk before its veth is made: the next agent must know of it', async () => {
    const make = of.veths.create.bind(of.veths)
    let saved: readonly string[] = []
    of.veths.create = (veth) => {
      saved = of.saved()
      make(veth)
    }
    await of.add({ pod: 'a' })
    expect(saved).toEqual(['a-1.json'])
  })

  test.each<[string, (of: PluginWorld) => void, string]>([
    ['the sources', (now) => now.change({ synced: false }), 'the sources are not read yet'],
    ['the pod', (now) => now.deletePod('a'), 'no source has Pod default/a on node n1'],
    ['the datastore', (now) => now.change({ locked: 'the datastore is locked' }), 'the datastore is locked'],
    ['the other nodes', (now) => now.change({ announced: false }), 'other nodes have not heard of this one'],
    ['its address', (now) => (now.addresses.gate = Promise.withResolvers().promise), 'its address is not written down yet'],
    ['the kernel', (now) => now.change({ missing: 'no program runs at npl/ingress' }), 'no program runs at npl/ingress'],
    ['the veth', (now) => (now.veths.lacks = 'npl has no carrier'), 'npl has no carrier'],
  ])('that waits for %s in vain says so at the deadline, and everything is taken back', async (_, lack, reason) => {
    lack(of)
    const call = of.add({ pod: 'a' }, { timeoutSeconds: 5 })
    await settle()
    of.clock.advance(4999)
    expect(await soFar(call)).toBeUndefined()
    of.clock.advance(1)
    expect(refusalOf(await call)).toBe(`11: not ready in time: ${reason}`)
    expect(of.left()).toEqual(NOTHING)
    expect([of.known('a'), of.clock.pending]).toEqual([[], 0])
  })

  test('whose address comes after its deadline holds none', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    of.addresses.gate = promise
    const call = of.add({ pod: 'a' })
    await settle()
    of.clock.advance(TIMEOUT_MS)
    expect(refusalOf(await call)).toContain('not ready in time')
    resolve(undefined)
    await settle()
    expect(of.left()).toEqual(NOTHING)
  })

  test('whose veth cannot be made leaves nothing', async () => {
    of.veths.gone.add('/run/netns/a-1')
    expect(refusalOf(await of.add({ pod: 'a' }))).toBe('11: /run/netns/a-1: no such file')
    expect(of.left()).toEqual(NOTHING)
  })

  test.each<[string, (of: PluginWorld) => void, string]>([
    ['its pod goes', (now) => now.deletePod('a'), '11: Pod default/a is gone'],
    ['its pod becomes another', (now) => now.putPod('a', { uid: 'u2' }), '11: Pod default/a is gone'],
    ['the agent stops', (now) => now.stop.abort(new Error('the agent stops')), '11: the agent stops'],
    ['another is asked for', (now) => void now.add({ pod: 'a', id: 'a-2' }), '11: another sandbox of the pod is asked for: a-2'],
  ])('ends at once when %s, and leaves nothing', async (_, end, refusal) => {
    of.putPod('a', { uid: 'u1' })
    of.change({ missing: 'a row' })
    const call = of.add({ pod: 'a', uid: 'u1' })
    await settle()
    expect(of.saved()).toEqual(['a-1.json'])
    end(of)
    expect(refusalOf(await call)).toBe(refusal)
    await settle()
    of.clock.advance(TIMEOUT_MS)
    await settle()
    expect(of.left()).toEqual(NOTHING)
  })

  test('that fails, and cannot be taken back, leaves its file: a DEL or the next agent finds it', async () => {
    of.change({ missing: 'a row' })
    of.addresses.stuck = new Error('ipam is busy')
    const call = of.add({ pod: 'a' }, { ipam: { type: 'host-local' } })
    await settle()
    of.clock.advance(TIMEOUT_MS)
    expect(refusalOf(await call)).toBe('11: not ready in time: a row')
    expect(of.logged('cni.delete-failed')).toMatchObject([{ containerId: 'a-1', reason: 'ipam is busy' }])
    expect(of.saved()).toEqual(['a-1.json'])
    of.addresses.stuck = undefined
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.left()).toEqual(NOTHING)
  })

  test('is refused with field and reason', async () => {
    of.putPod('host', { hostNetwork: true })
    of.putPod('b')
    await of.add({ pod: 'a' })
    const refused = [{ pod: 'host' }, { pod: 'a', ifname: 'eth1' }, { pod: 'b', id: 'a-1' }]
    expect((await Promise.all(refused.map((sandbox) => of.add(sandbox)))).map(refusalOf)).toEqual([
      "7: Pod default/host: is in the host's network",
      '7: the pod has eth0 already: one interface is all that it gets',
      '4: CNI_CONTAINERID: is that of Pod default/a',
    ])
    expect(of.left()).toMatchObject({ saved: ['a-1.json'], held: ['a-1'] })
  })

  test('of another pod of the same name waits for that one', async () => {
    of.putPod('a', { uid: 'u1' })
    const call = of.add({ pod: 'a', uid: 'u2' }, { timeoutSeconds: 5 })
    expect(await soFar(call)).toBeUndefined()
    of.putPod('a', { uid: 'u2' })
    expect((await call).status).toBe(0)
    const late = of.add({ pod: 'a', id: 'a-2', uid: 'u3' }, { timeoutSeconds: 1 })
    await settle()
    of.clock.advance(1000)
    expect(refusalOf(await late)).toBe(
      '11: not ready in time: no source has Pod default/a on node n1 with the uid u3, which the runtime says, but with u2',
    )
  })
})

describe('ADD again', () => {
  test('of the same sandbox has the same answer, and keeps address and veth', async () => {
    const first = await of.add({ pod: 'a' })
    expect(await of.add({ pod: 'a' })).toEqual(first)
    expect(of.journal).toEqual(['assign a-1', 'create a-1', 'raise a-1', 'raise a-1'])
  })

  test.each<[string, (of: PluginWorld) => void]>([
    ['differs', (now) => (now.veths.differs = 'eth0 is down')],
    ['is gone', (now) => now.veths.devices.clear()],
  ])('makes a veth that %s again', async (_, change) => {
    const first = await of.add({ pod: 'a' })
    change(of)
    expect(await of.add({ pod: 'a' })).toEqual(first)
    expect(of.journal).toEqual(['assign a-1', 'create a-1', 'raise a-1', 'create a-1', 'raise a-1'])
  })

  test('that fails leaves what was there', async () => {
    await of.add({ pod: 'a' })
    of.change({ missing: 'a row' })
    const again = of.add({ pod: 'a' })
    await settle()
    of.clock.advance(TIMEOUT_MS)
    expect(refusalOf(await again)).toBe('11: not ready in time: a row')
    expect(of.left()).toMatchObject({ saved: ['a-1.json'], devices: [hostOf('a')], held: ['a-1'] })
  })

  test('by a second sandbox takes the place of the first, whose DEL then changes nothing', async () => {
    await of.add({ pod: 'a' })
    expect((await of.add({ pod: 'a', id: 'a-2' })).output).toMatchObject({ ips: [{ address: '10.0.0.2/32' }] })
    expect(of.journal.slice(3)).toEqual(['remove a-1', 'release a-1', 'assign a-2', 'create a-2', 'raise a-2'])
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.left()).toMatchObject({ saved: ['a-2.json'], devices: [hostOf('a')], held: ['a-2'] })
    expect(of.known('a')).toEqual(['10.0.0.2'])
  })

  test('after the agent was replaced is known from disk', async () => {
    const first = await of.add({ pod: 'a' })
    expect(await of.ask(of.next(), 'ADD', { pod: 'a' })).toEqual(first)
    expect(of.journal).toEqual(['assign a-1', 'create a-1', 'raise a-1', 'raise a-1'])
  })
})
