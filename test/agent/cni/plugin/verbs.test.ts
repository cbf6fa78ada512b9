// SPDX-License-Identifier: Apache-2.0
/** DEL, CHECK, GC and STATUS of pods that have their network from Netplane. Layer: test. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DatastoreLockedError } from '#lib/base/errors.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { hostOf, PluginWorld, refusalOf, settle } from './world.ts'

const NOTHING = { saved: [], devices: [], held: [], watched: 0 }
const OTHER = { ipam: { type: 'host-local' } }

let of: PluginWorld
beforeEach(() => {
  of = new PluginWorld()
  for (const pod of ['a', 'b']) of.putPod(pod)
})

afterEach(() => {
  of[Symbol.dispose]()
})

describe('DEL', () => {
  test('takes all away, and the address last; again it succeeds', async () => {
    await of.add({ pod: 'a' })
    for (let times = 0; times < 2; times++) expect(await of.call('DEL', { pod: 'a' })).toEqual({ status: 0, output: {} })
    expect(of.left()).toEqual(NOTHING)
    expect([of.known('a'), of.journal.slice(3)]).toEqual([[], ['remove a-1', 'release a-1', 'release unknown a-1']])
  })

  test('of another interface, or of a veth that is another sandbox of the name, leaves those', async () => {
    await of.add({ pod: 'a' })
    expect((await of.call('DEL', { pod: 'a', ifname: 'eth1' })).status).toBe(0)
    expect(of.saved()).toEqual(['a-1.json'])
    of.veths.devices.set(hostOf('a'), { index: 9, containerId: 'a-2', mtu: 1450, netns: '/n', up: true })
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.left()).toEqual({ ...NOTHING, devices: [hostOf('a')] })
  })

  test('answers in five seconds though its address cannot be given back yet: that is collected', async () => {
    await of.add({ pod: 'a' })
    const { promise, resolve } = Promise.withResolvers<undefined>()
    of.addresses.gate = promise
    const call = of.call('DEL', { pod: 'a' })
    await settle()
    of.clock.advance(5000)
    expect((await call).status).toBe(0)
    expect(of.logged('ipam.release-deferred')).toMatchObject([{ containerId: 'a-1' }])
    expect(of.left()).toEqual({ ...NOTHING, held: ['a-1'] })
    resolve(undefined)
    await of.plugin.collect()
    expect(of.left()).toEqual(NOTHING)
  })

  test('succeeds while the datastore is locked: the address is collected once it is not', async () => {
    await of.add({ pod: 'a' })
    of.addresses.locked = new DatastoreLockedError('the datastore is locked')
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.logged('ipam.release-deferred')).toHaveLength(1)
    await of.plugin.collect()
    expect(of.left()).toEqual({ ...NOTHING, held: ['a-1'] })
    of.addresses.locked = undefined
    await of.plugin.collect()
    expect(of.left()).toEqual(NOTHING)
  })

  test('of a sandbox that is still being added ends that ADD, and waits for its end', async () => {
    of.change({ missing: 'a row' })
    const add = of.add({ pod: 'a' })
    await settle()
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(refusalOf(await add)).toBe('11: a-1 is deleted already')
    expect(of.left()).toEqual(NOTHING)
  })

  test('gives addresses of another plugin back before it forgets whose they are', async () => {
    await of.add({ pod: 'a' }, OTHER)
    of.addresses.stuck = new Error('ipam is busy')
    expect(refusalOf(await of.call('DEL', { pod: 'a' }))).toBe('11: ipam is busy')
    expect(of.left()).toEqual({ ...NOTHING, saved: ['a-1.json'], held: ['a-1'] })
    of.addresses.stuck = undefined
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.journal.at(-1)).toBe('release by host-local in /opt/cni/bin: a-1')
    expect(of.left()).toEqual(NOTHING)
  })

  test('while another plugin is still giving addresses is to come again', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    of.addresses.gate = promise
    const add = of.add({ pod: 'a' }, { ...OTHER, timeoutSeconds: 1 })
    await settle()
    of.clock.advance(1000)
    expect(refusalOf(await add)).toBe('11: not ready in time: its address is not written down yet')
    expect(refusalOf(await of.call('DEL', { pod: 'a' }))).toBe('11: another plugin is still giving it addresses')
    resolve(undefined)
    await settle()
    expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
    expect(of.left()).toEqual(NOTHING)
  })
})

describe('CHECK', () => {
  test('is content with what ADD has made, and says what differs', async () => {
    const prevResult = (await of.add({ pod: 'a' })).output
    const check = async (sandbox = { pod: 'a' }, previous: unknown = prevResult): Promise<string> => {
      const called = of.call('CHECK', sandbox, { prevResult: previous })
      await settle()
      of.clock.advance(2000)
      const outcome = await called
      return outcome.status === 0 ? 'content' : refusalOf(outcome)
    }
    expect(await check()).toBe('content')
    expect(await check({ pod: 'a' }, { ips: [{ address: '10.9.9.9/32' }] })).toBe("101: 10.9.9.9 is not the pod's")
    expect(await check({ pod: 'b' })).toBe('3: there is no eth0 of b-1')
    of.change({ missing: 'a row' })
    expect(await check()).toBe('101: a row')
    of.veths.differs = 'eth0 is down'
    expect(await check()).toBe('101: eth0 is down')
    of.veths.devices.clear()
    expect(await check()).toBe(`101: ${hostOf('a')} is gone`)
    expect(of.left()).toMatchObject({ saved: ['a-1.json'], held: ['a-1'] })
  })

  test('looks again, for rows are known anew when other programs have been loaded', async () => {
    const prevResult = (await of.add({ pod: 'a' })).output
    of.change({ missing: 'a row' })
    const called = of.call('CHECK', { pod: 'a' }, { prevResult })
    await settle()
    of.change({ missing: undefined })
    expect((await called).status).toBe(0)
  })
})

describe('GC', () => {
  const gc = async (...valid: readonly string[]): Promise<string> => {
    const list = valid.map((containerID) => ({ containerID, ifname: 'eth0' }))
    const outcome = await of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': list })
    return outcome.status === 0 ? 'done' : refusalOf(outcome)
  }

  test('takes what is not valid, and addresses that no sandbox has', async () => {
    for (const pod of ['a', 'b']) await of.add({ pod })
    of.addresses.held.set('leaked', parseAddr('10.0.0.9'))
    expect(await gc('b-1')).toBe('done')
    expect(of.left()).toMatchObject({ saved: ['b-1.json'], devices: [hostOf('b')], held: ['b-1'] })
    expect(of.logged('ipam.leaks-collected')).toMatchObject([{ count: 1 }])
  })

  test('leaves the address of a sandbox that is being added', async () => {
    of.change({ missing: 'a row' })
    const add = of.add({ pod: 'a' })
    await settle()
    await of.plugin.collect()
    of.change({ missing: undefined })
    expect([(await add).status, [...of.addresses.held.keys()]]).toEqual([0, ['a-1']])
  })

  test('takes the address of a sandbox whose file cannot be read only when the sandbox is not valid, or deleted', async () => {
    for (const pod of ['a', 'b']) {
      await of.add({ pod })
      of.damage(`${pod}-1.json`)
    }
    const plugin = of.next()
    const gc = async (...ids: readonly string[]): Promise<void> => {
      const list = ids.map((containerID) => ({ containerID, ifname: 'eth0' }))
      expect((await of.ask(plugin, 'GC', { pod: 'x', config: { 'cni.dev/valid-attachments': list } })).status).toBe(0)
    }
    await gc('a-1', 'b-1')
    expect(of.left()).toMatchObject({ saved: ['a-1.json', 'b-1.json'], held: ['a-1', 'b-1'] })
    await gc('a-1')
    expect(of.left()).toMatchObject({ saved: ['a-1.json'], held: ['a-1'] })
    expect((await of.ask(plugin, 'DEL', { pod: 'a' })).status).toBe(0)
    await plugin.collect()
    expect(of.left()).toMatchObject({ saved: [], held: [] })
  })

  test('collects nothing before it is known which pods there are', async () => {
    of.addresses.held.set('a-1', parseAddr('10.0.0.9'))
    of.change({ synced: false })
    expect(await gc()).toBe('done')
    expect(of.left()).toMatchObject({ held: ['a-1'] })
  })

  test('has its caller come again when another plugin is slow, or the collection', async () => {
    for (const pod of ['a', 'b']) await of.add({ pod }, OTHER)
    const slow = Promise.withResolvers<undefined>()
    of.addresses.gate = slow.promise
    const first = gc()
    await settle()
    of.clock.advance(5000)
    slow.resolve(undefined)
    expect(await first).toBe('11: not all addresses of another plugin are given back yet')
    expect(of.left()).toMatchObject({ saved: ['b-1.json'], held: ['b-1'] })
    of.addresses.gate = Promise.withResolvers().promise
    const second = gc('b-1')
    await settle()
    of.clock.advance(5000)
    expect(await second).toBe('11: not ready in time: addresses are still being collected')
  })

  test('is held up by no sandbox that cannot be taken away', async () => {
    await of.add({ pod: 'a' }, OTHER)
    await of.add({ pod: 'b' })
    of.addresses.stuck = new Error('ipam is busy')
    expect(await gc()).toBe('11: ipam is busy')
    expect(of.left()).toMatchObject({ saved: ['a-1.json'], devices: [], held: ['a-1'] })
  })
})

describe('what another plugin has given', () => {
  test('CHECK is asked of it too', async () => {
    const prevResult = (await of.add({ pod: 'a' }, OTHER)).output
    expect((await of.call('CHECK', { pod: 'a' }, { ...OTHER, prevResult })).status).toBe(0)
    expect(of.journal.at(-1)).toBe('check by host-local: a-1')
    of.addresses.stuck = new Error('no such lease')
    expect(refusalOf(await of.call('CHECK', { pod: 'a' }, { ...OTHER, prevResult }))).toBe('11: no such lease')
  })

  test('STATUS is asked of it too', async () => {
    expect((await of.call('STATUS', { pod: 'x' }, OTHER)).status).toBe(0)
    of.addresses.stuck = new Error('no daemon')
    expect(refusalOf(await of.call('STATUS', { pod: 'x' }, OTHER))).toBe('50: no daemon')
    expect((await of.call('STATUS', { pod: 'x' })).status).toBe(0)
  })

  test('GC is passed on, with what is valid and what is being added', async () => {
    const valid = { 'cni.dev/valid-attachments': [{ containerID: 'b-1', ifname: 'eth0' }] }
    const { promise, resolve } = Promise.withResolvers<undefined>()
    of.addresses.gate = promise
    const add = of.add({ pod: 'a' }, OTHER)
    await settle()
    const collected = of.call('GC', { pod: 'x' }, { ...OTHER, ...valid })
    await settle()
    expect(of.journal).toEqual(['collect by host-local, but b-1 a-1'])
    resolve(undefined)
    expect([(await collected).status, (await add).status]).toEqual([0, 0])
    of.addresses.stuck = new Error('ipam is busy')
    expect(refusalOf(await of.call('GC', { pod: 'x' }, { ...OTHER, 'cni.dev/valid-attachments': [] }))).toBe('11: ipam is busy')
  })

  test('GC leaves it to a sandbox that is still there', async () => {
    for (const pod of ['a', 'b']) await of.add({ pod }, OTHER)
    const slow = Promise.withResolvers<undefined>()
    of.addresses.gate = slow.promise
    const collected = of.call('GC', { pod: 'x' }, { ...OTHER, 'cni.dev/valid-attachments': [] })
    await settle()
    of.clock.advance(5000)
    slow.resolve(undefined)
    expect(refusalOf(await collected)).toBe('11: not all addresses of another plugin are given back yet')
    expect(of.journal.at(-1)).toBe('collect by host-local, but b-1')
    expect(of.left()).toMatchObject({ saved: ['b-1.json'], held: ['b-1'] })
  })
})

test('STATUS says why no pod can be served, and logs each answer once', async () => {
  of.change({ notReady: 'programs: starting' })
  const status = async (): Promise<unknown> => await of.call('STATUS', { pod: 'x' })
  for (let times = 0; times < 2; times++)
    expect(await status()).toEqual({ status: 1, output: { cniVersion: '1.0.0', code: 50, msg: 'programs: starting' } })
  of.change({ notReady: undefined })
  for (let times = 0; times < 2; times++) expect(await status()).toEqual({ status: 0, output: {} })
  expect(of.logged('cni.status-changed').map(({ told }) => told)).toEqual(['programs: starting', 'ready'])
})
