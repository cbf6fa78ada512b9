// SPDX-License-Identifier: Apache-2.0
/** Programs that are loaded while manifests are still read. Layer: test. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defaultConfig } from '#agent/config/config.ts'
import { systemClock } from '#lib/base/clock.ts'
import { BpfMap } from '#native'
import type { ScratchNode } from '../support/scratch-node.ts'
import { felix, service } from './agent-manifests.ts'
import { makeNode, PINS, rows } from './agent-node.ts'

/** more than are read in one turn */
const MANY = 600
/** longer than an agent takes to load programs */
const SLOW_SECONDS = 30

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
  mkdirSync(join(machine.resources, 'services'))
  for (let at = 0; at < MANY; at++) {
    const spec = { clusterIP: `10.97.${at >> 8}.${at & 255}`, ports: [{ port: 80 }] }
    machine.put(`services/${at}.json`, [{ ...service, metadata: { name: `s${at}`, namespace: 'default' }, spec }])
  }
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

function pinned(folder: string): string[] {
  const path = machine.path(`${PINS}/${folder}`)
  return existsSync(path) ? readdirSync(path) : []
}

function flowRoom(): number {
  const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_ct`))
  const { maxEntries } = map.info()
  map.close()
  return maxEntries
}

/** Settings are the last that is read. */
function hideSettings(spec: Readonly<Record<string, unknown>>): void {
  machine.drop('felix.json')
  machine.put('services/felix.json', [felix(machine.cgroup, spec)])
}

/** By the next agent. */
async function expectTakeover(): Promise<void> {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(agent.events('takeover.begun')).toHaveLength(1)
}

test('are those that are wanted, and in their place then', async () => {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  const [ahead] = agent.events('programs.ahead')
  expect(agent.events('programs.ready')).toEqual([expect.objectContaining({ generation: ahead?.['generation'], adopted: false })])
  expect([pinned('programs'), pinned('ahead')]).toEqual([[ahead?.['generation']], []])
  expect(await rows(machine, 'np_frontends')).toBe(2 + MANY)
})

describe('of which nothing stays', () => {
  test('when what came last asks for others', async () => {
    // half of what was taken for granted: nothing may keep it as large as that
    const conntrack = defaultConfig.compile.mapSizes.conntrack / 2
    hideSettings({ bpfMapSizeConntrack: conntrack })
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect([agent.events('programs.ahead').length, agent.events('programs.ready').length]).toEqual([1, 1])
    expect([flowRoom(), pinned('programs').length, pinned('ahead')]).toEqual([conntrack, 1, []])
  })

  test('when the agent is killed before all is read: the next one takes over what another proxy has, and sizes are as settings say', async () => {
    const conntrack = defaultConfig.compile.mapSizes.conntrack / 2
    hideSettings({ bpfMapSizeConntrack: conntrack })
    machine.sh('nft add table ip kube-proxy')
    const first = machine.agent()
    await first.until('the guess', () => pinned('ahead/maps').includes('np_ct'))
    await first.kill()
    expect([pinned('maps'), pinned('programs')]).toEqual([[], []])
    await expectTakeover()
    expect([flowRoom(), pinned('ahead')]).toEqual([conntrack, []])
  })
})

test('are in their place only once it is known whether another proxy was there: what a kill leaves is no sign that flows are ours', async () => {
  machine.sh('nft add table ip kube-proxy')
  const nft = machine.sh('command -v nft').trim()
  const [kept, slow] = [join(machine.resources, '.nft'), join(machine.resources, '.slow')]
  copyFileSync(nft, kept)
  writeFileSync(slow, `#!/bin/sh\nsleep ${SLOW_SECONDS}\nexec ${kept} "$@"\n`, { mode: 0o755 })
  machine.sh(`mount --bind ${slow} ${nft}`)
  const first = machine.agent()
  await first.event('programs.ahead')
  await systemClock.sleep(1000, AbortSignal.timeout(2000))
  expect([pinned('maps'), first.events('kube-proxy.found')]).toEqual([[], []])
  await first.kill()
  machine.sh(`umount --lazy ${nft}`)
  await expectTakeover()
})

test('maps without programs are no sign that flows are ours: who made them was killed, or refused', async () => {
  const before = machine.agent()
  await before.event('dataplane.ready')
  await before.kill()
  machine.sh(`rm -r /${PINS}/programs /${PINS}/links && nft add table ip kube-proxy`)
  await expectTakeover()
})

test('are not guessed where some are at work', async () => {
  const before = machine.agent()
  await before.event('dataplane.ready')
  await before.kill()
  const agent = machine.agent()
  expect((await agent.event('programs.ready'))['adopted']).toBe(true)
  await agent.event('dataplane.ready')
  expect(agent.events('programs.ahead')).toEqual([])
})
