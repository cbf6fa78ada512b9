// SPDX-License-Identifier: Apache-2.0
/** Programs that are loaded while manifests are still read. Layer: test. */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BpfMap } from '#native'
import type { AgentProcess, ScratchNode } from '../support/scratch-node.ts'
import { felix, service } from './agent-manifests.ts'
import { makeNode, PINS, rows } from './agent-node.ts'

/** more than are read in one turn */
const MANY = 600

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
  mkdirSync(join(machine.resources, 'services'))
  for (let at = 0; at < MANY; at++)
    machine.put(`services/${at}.json`, [
      {
        ...service,
        metadata: { name: `s${at}`, namespace: 'default' },
        spec: { clusterIP: `10.97.${at >> 8}.${at & 255}`, ports: [{ port: 80 }] },
      },
    ])
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** The first of these that was said. */
async function first(agent: AgentProcess, ...events: readonly string[]): Promise<string | undefined> {
  await agent.event('dataplane.ready')
  return agent.lines.find(({ event }) => events.includes(event))?.event
}

function flowRoom(): number {
  const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_ct`))
  const { maxEntries } = map.info()
  map.close()
  return maxEntries
}

test('are those that are wanted, and loaded once', async () => {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(agent.events('programs.ready')).toHaveLength(1)
  expect(await rows(machine, 'np_frontends')).toBe(2 + MANY)
})

test('are loaded again when what came last asks for others, and of the first nothing stays', async () => {
  machine.drop('felix.json')
  // half of what is taken for granted: nothing may keep it as large as it was made first
  machine.put('services/felix.json', [felix(machine.cgroup, { bpfMapSizeConntrack: 256_000 })])
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(agent.events('programs.ready')).toHaveLength(2)
  expect([flowRoom(), readdirSync(machine.path(`${PINS}/programs`))]).toEqual([256_000, [expect.any(String)]])
})

test('are not guessed where some are at work', async () => {
  const before = machine.agent()
  await before.event('dataplane.ready')
  await before.kill()
  const agent = machine.agent()
  expect(await first(agent, 'configuration.in-force', 'programs.ready')).toBe('configuration.in-force')
  expect((await agent.event('programs.ready'))['adopted']).toBe(true)
})
