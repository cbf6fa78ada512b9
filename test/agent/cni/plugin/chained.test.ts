// SPDX-License-Identifier: Apache-2.0
/** The verbs of CNI where another plugin gives the pod its network. Layer: test. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hostOf, PluginWorld, refusalOf, settle } from './world.ts'

const RESULT = {
  cniVersion: '1.0.0',
  interfaces: [{ name: 'veth1' }, { name: 'eth0', sandbox: '/run/netns/a-1' }],
  ips: [{ address: '10.3.0.2/24', interface: 1 }],
  extra: 'theirs',
}
const PREVIOUS = { prevResult: RESULT }

let of: PluginWorld
beforeEach(() => {
  of = new PluginWorld({ chained: true })
  of.putPod('a')
  of.otherVeths.set('/run/netns/a-1', 'veth1')
})

afterEach(() => {
  of[Symbol.dispose]()
})

test("ADD waits for the kernel, and answers what the others did; DEL forgets: devices and addresses are the other plugin's", async () => {
  of.change({ missing: 'a row' })
  const call = of.add({ pod: 'a' }, PREVIOUS)
  await settle()
  expect([of.saved(), of.known('a')]).toEqual([['a-1.json'], ['10.3.0.2']])
  of.change({ missing: undefined })
  expect(await call).toEqual({ status: 0, output: RESULT })
  expect((await of.call('DEL', { pod: 'a' })).status).toBe(0)
  expect([of.saved(), of.known('a'), of.journal]).toEqual([[], [], []])
})

test('an ADD that waits in vain says for what, and is forgotten', async () => {
  of.change({ missing: 'no program runs at veth1/ingress' })
  const call = of.add({ pod: 'a' }, PREVIOUS)
  await settle()
  of.clock.advance(30_000)
  expect(refusalOf(await call)).toBe('11: not ready in time: no program runs at veth1/ingress')
  expect([of.saved(), of.known('a')]).toEqual([[], []])
})

test('ADD again takes veth and addresses as they are now', async () => {
  await of.add({ pod: 'a' }, PREVIOUS)
  of.otherVeths.set('/run/netns/a-1', 'veth2')
  const prevResult = { ...RESULT, ips: [{ address: '10.3.0.9/24', interface: 1 }] }
  expect(await of.add({ pod: 'a' }, { prevResult })).toEqual({ status: 0, output: prevResult })
  expect(of.known('a')).toEqual(['10.3.0.9'])
  expect(of.store.snapshot.pods.get('default/a')?.veth).toEqual({ iface: 'veth2', ours: false })
})

test.each([
  ['no result of a plugin before', { pod: 'a', config: {} }, "prevResult: is missing: this node's pods are plugged in by another plugin"],
  ['no address of the interface', { pod: 'a', config: { prevResult: { ...RESULT, ips: [] } } }, 'prevResult.ips: has no address of eth0'],
  ['no veth', { pod: 'b', config: PREVIOUS }, 'there is no eth0 in /run/netns/b-1'],
])('ADD with %s is refused', async (_, { pod, config }, reason) => {
  of.putPod('b')
  expect(refusalOf(await of.add({ pod }, config))).toBe(`7: ${reason}`)
  expect(of.saved()).toEqual([])
})

test('CHECK says where the veth has gone, and what the kernel lacks', async () => {
  await of.add({ pod: 'a' }, PREVIOUS)
  const check = async (): Promise<string> => refusalOf(await of.call('CHECK', { pod: 'a' }, PREVIOUS))
  expect((await of.call('CHECK', { pod: 'a' }, PREVIOUS)).status).toBe(0)
  of.otherVeths.set('/run/netns/a-1', 'veth2')
  expect(await check()).toBe('101: eth0 has its other end at veth2, not at veth1')
  of.otherVeths.set('/run/netns/a-1', 'veth1')
  of.change({ missing: 'a row' })
  const lacking = check()
  await settle()
  of.clock.advance(2000)
  expect(await lacking).toBe('101: a row')
})

test('GC forgets what is not valid', async () => {
  await of.add({ pod: 'a' }, PREVIOUS)
  expect((await of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': [] })).status).toBe(0)
  expect([of.saved(), of.known('a')]).toEqual([[], []])
})

test('a sandbox stays in the mode in which it was added, whatever the next agent is', async () => {
  using own = new PluginWorld()
  for (const pod of ['a', 'b']) own.putPod(pod)
  own.otherVeths.set('/run/netns/b-1', 'veth1')
  const added = await own.add({ pod: 'a' })
  // a list with another plugin before us needs no flag
  expect(await own.add({ pod: 'b' }, PREVIOUS)).toEqual({ status: 0, output: RESULT })
  const next = own.next({ chained: true })
  expect(await own.ask(next, 'ADD', { pod: 'a' })).toEqual(added)
  expect(refusalOf(await own.ask(next, 'ADD', { pod: 'b' }))).toContain('7: prevResult: is missing')
  expect((await own.ask(next, 'DEL', { pod: 'a' })).status).toBe(0)
  expect([own.veths.devices.has(hostOf('a')), own.saved()]).toEqual([false, ['b-1.json']])
})
