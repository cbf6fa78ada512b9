// SPDX-License-Identifier: Apache-2.0
/** kube-proxy before a removal. Layer: test. */
import { expect, test } from 'vitest'
import { ProxyReturn, RETURN_MS } from '#operator/switch/proxy-return.ts'
import type { Observed } from '#operator/switch/observed.ts'
import { PROXY_COMMANDS } from '#operator/switch/proxy-command.ts'
import type { ProxyFound } from '#operator/switch/proxy-found.ts'
import { World } from './world.ts'

const COMMANDS = PROXY_COMMANDS.Generic

function stopped(): World {
  const world = new World(['a', 'b'], { mode: 'BPF' })
  world.settle()
  return world
}

test('a kube-proxy that we have stopped is started, and waited for on every node', () => {
  const [world, proxy] = [stopped(), new ProxyReturn()]
  const first = proxy.step(world.observed(), COMMANDS, 0)
  expect(first?.isToStart).toBe(true)
  expect(first?.state.progressing).toEqual({ reason: 'Removing', message: 'kube-proxy is to serve again on a, b' })
  world.write({ kind: 'proxy', runs: true })
  for (const one of world.machines.values()) if (one.name === 'a') world.come(one)
  expect(proxy.step(world.observed(), COMMANDS, 1)).toMatchObject({
    isToStart: false,
    state: { progressing: { message: 'kube-proxy is to serve again on b' } },
  })
  world.round()
  expect(proxy.step(world.observed(), COMMANDS, 2)).toBeUndefined()
  // nodes that go later are no reason to begin again
  for (const one of world.machines.values()) one.hasProxyPod = false
  expect(proxy.step(world.observed(), COMMANDS, 3)).toBeUndefined()
})

test('a kube-proxy that does not come is left after a while', () => {
  const [world, proxy] = [stopped(), new ProxyReturn()]
  expect(proxy.step(world.observed(), COMMANDS, 5)).toBeDefined()
  expect(proxy.step(world.observed(), COMMANDS, RETURN_MS + 4)).toBeDefined()
  expect(proxy.step(world.observed(), COMMANDS, RETURN_MS + 5)).toBeUndefined()
})

/** Stopped by another, and so that we may not start it. */
function byHand(world: World, more: Partial<ProxyFound> = {}): Observed {
  const observed = world.observed()
  const selector = 'non-calico=true'
  return { ...observed, proxy: { ...observed.proxy, state: 'stopped-by-hand', what: 'DaemonSet x/kube-proxy', selector, ...more } }
}

const WAIT = 'agents wait for it for 120 s from the deletion on, then they go without it'

test('one that was stopped by hand is waited for, with how and what to do, and agents go anyway', () => {
  const [world, proxy] = [stopped(), new ProxyReturn()]
  const how = 'is stopped by the node selector non-calico=true: take away the node selector that no node has (non-calico=true)'
  const degraded = { reason: 'KubeProxyMissing', message: `DaemonSet x/kube-proxy ${how}; ${WAIT}` }
  expect(proxy.step(byHand(world), COMMANDS, 0)).toMatchObject({ isToStart: false, state: { degraded } })
  expect(proxy.step(byHand(world), COMMANDS, RETURN_MS)).toBeUndefined()
  expect(proxy.missing).toEqual(degraded)
})

test('one that was stopped by hand and is started meanwhile is waited for on every node', () => {
  const [world, proxy] = [stopped(), new ProxyReturn()]
  expect(proxy.step(byHand(world), COMMANDS, 0)?.state.degraded).toBeDefined()
  world.write({ kind: 'proxy', runs: true })
  const observed = world.observed()
  const message = 'kube-proxy is to serve again on a, b'
  const others = { ...observed, proxy: { ...observed.proxy, canBeChanged: false } }
  expect(proxy.step(others, COMMANDS, 1)).toMatchObject({ isToStart: false, state: { progressing: { message } } })
  world.round()
  expect(proxy.step(world.observed(), COMMANDS, 2)).toBeUndefined()
  expect(proxy.missing).toBeUndefined()
})

test('one that we have stopped and another manages is that one’s to start', () => {
  const manager = 'Argo CD (x)'
  const found = byHand(stopped(), { state: 'stopped', manager, canBeChanged: false, selector: '' })
  const message = `DaemonSet x/kube-proxy is stopped, and Argo CD (x) manages it: start it: ${COMMANDS.start}; ${WAIT}`
  expect(new ProxyReturn().step(found, COMMANDS, 0)).toMatchObject({ isToStart: false, state: { degraded: { message } } })
})

test('a cluster that has none does not wait for it', () => {
  const proxy = new ProxyReturn()
  expect(proxy.step(byHand(stopped(), { state: 'absent' }), COMMANDS, 0)).toBeUndefined()
  expect(proxy.missing).toBeUndefined()
})
