// SPDX-License-Identifier: Apache-2.0
/** The first start on a node that another proxy has served: its connections get some time. Layer: test. */
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BpfMap, monotonicNs } from '#native'
import { TAKEOVER_MS } from '#agent/dataplane/conntrack/takeover.ts'
import { systemClock } from '#lib/base/clock.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { felix } from './manifests.ts'
import { makeNode, PINS } from './node.ts'

/** longer than an agent takes to load programs */
const SLOW_SECONDS = 30

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** ms of the monotonic clock */
function takeoverUntil(): number {
  const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_state`))
  const value = map.lookup(Buffer.alloc(4))?.readBigUInt64LE() ?? 0n
  map.close()
  return Number(value) / 1e6
}

test('where kube-proxy was, its connections are taken over for a while, and not again after a restart', async () => {
  machine.sh('nft add table ip kube-proxy')
  const before = monotonicNs() / 1e6
  const first = machine.agent()
  await first.event('dataplane.ready')
  const until = takeoverUntil()
  expect(until).toBeGreaterThan(before + TAKEOVER_MS)
  expect(until).toBeLessThanOrEqual(monotonicNs() / 1e6 + TAKEOVER_MS)
  await first.kill()
  await machine.agent().event('dataplane.ready')
  expect(takeoverUntil()).toBe(until)
})

test('where it was not there is nothing to take over', async () => {
  await machine.agent().event('dataplane.ready')
  expect(takeoverUntil()).toBe(0)
})

test('rules that come after the first start are none of ours to wait for', async () => {
  const first = machine.agent()
  await first.event('dataplane.ready')
  await first.kill()
  machine.sh('nft add table ip kube-proxy')
  await machine.agent().event('dataplane.ready')
  expect(takeoverUntil()).toBe(0)
})

/** By the next agent. */
async function expectTakeover(): Promise<void> {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(agent.events('takeover.begun')).toHaveLength(1)
}

test('nothing is pinned before it is known whether it was there: what a kill leaves is no sign that flows are ours', async () => {
  machine.sh('nft add table ip kube-proxy')
  const nft = machine.sh('command -v nft').trim()
  const [kept, slow] = [join(machine.resources, '.nft'), join(machine.resources, '.slow')]
  copyFileSync(nft, kept)
  writeFileSync(slow, `#!/bin/sh\nsleep ${SLOW_SECONDS}\nexec ${kept} "$@"\n`, { mode: 0o755 })
  machine.sh(`mount --bind ${slow} ${nft}`)
  const first = machine.agent()
  await first.event('kernel.features')
  await systemClock.sleep(5000, AbortSignal.timeout(10_000))
  const maps = machine.path(`${PINS}/maps`)
  expect([existsSync(maps) ? readdirSync(maps) : [], first.events('kube-proxy.detected')]).toEqual([[], []])
  await first.kill()
  machine.sh(`umount --lazy ${nft}`)
  await expectTakeover()
})

test('maps without programs are no sign that flows are ours: their agent was killed, or its programs refused', async () => {
  const before = machine.agent()
  await before.event('dataplane.ready')
  await before.kill()
  machine.sh(`rm -r /${PINS}/programs /${PINS}/links && nft add table ip kube-proxy`)
  await expectTakeover()
})

test("kube-proxy's rules go once the programs serve, with a takeover that only --cleanup ends", async () => {
  machine.sh('nft add table ip kube-proxy; nft add table ip kube-proxy-of-mine')
  const agent = machine.agent()
  expect((await agent.event('kube-proxy.removed'))['rules']).toEqual(['nft: table ip kube-proxy'])
  expect(agent.events('dataplane.ready')).toHaveLength(1)
  const tables = ['table ip kube-proxy-of-mine', 'table ip netplane-takeover', 'table ip6 netplane-takeover']
  expect(machine.sh('nft list tables').trim().split('\n').sort()).toEqual(tables)
  await agent.stop()
  expect(machine.sh('nft list tables')).toContain('netplane-takeover')
  machine.sh('nft add table ip netplane-flows')
  const { output } = machine.cleanup()
  for (const table of ['netplane-takeover', 'netplane-flows']) expect(output).toContain(`removed nftables ${table}\n`)
  expect(machine.sh('nft list tables').trim()).toBe(tables[0])
  expect(machine.cleanup()).toEqual({ status: 0, output: 'there was nothing to remove\n' })
})

test("kube-proxy's rules stay as long as they may not be removed, and the agent logs that they do", async () => {
  machine.sh('nft add table ip kube-proxy')
  machine.put('felix.json', [felix(machine.cgroup, { bpfProxyIptablesCleanupEnabled: false })])
  const agent = machine.agent()
  expect((await agent.event('kube-proxy.kept'))['rules']).toEqual(['nft: table ip kube-proxy'])
  expect(machine.sh('nft list tables').trim()).toBe('table ip kube-proxy')
  machine.put('felix.json', [felix(machine.cgroup)])
  await agent.event('kube-proxy.removed')
  expect(machine.sh('nft list tables')).not.toContain('table ip kube-proxy')
})
