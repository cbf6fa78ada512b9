// SPDX-License-Identifier: Apache-2.0
/** What is loaded before it is known to be wanted: put in its place, or gone. Layer: test. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { Configuration } from '#agent/compile/desired.ts'
import { compileConfiguration } from '#agent/compile/node.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { Ahead } from '#agent/dataplane/ahead.ts'
import { probeFeatures } from '#agent/dataplane/features.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { InterfaceTable } from '#agent/interfaces/table.ts'
import { packageObjects } from '#agent/node/facts.ts'
import { node, storeOf } from '../support/build.ts'

const settings = defaultConfig.compile
const LIKELY = compileConfiguration({ node: 'n1', snapshot: storeOf([node('n1')]).snapshot, settings })
const OTHER: Configuration = { ...LIKELY, mapSizes: { ...LIKELY.mapSizes, conntrack: 1000 } }

let pins: Pins
beforeEach(() => {
  pins = new Pins(join(mkdtempSync('/sys/fs/bpf/np-test-'), 'netplane'))
})
afterEach(() => {
  rmSync(join(pins.dir, '..'), { recursive: true })
})

function begun(objects = packageObjects()): Ahead {
  const interfaces = new InterfaceTable(() => undefined)
  const ahead = new Ahead({ pins, objects, features: probeFeatures(), interfaces, clock: systemClock, log: silentLog })
  ahead.begin(LIKELY)
  return ahead
}

/** Everything below the folder of pins. */
function pinned(): string[] {
  return existsSync(pins.dir)
    ? readdirSync(pins.dir, { recursive: true, encoding: 'utf8' }).filter((name) => !/^(maps|programs|links)$/.test(name))
    : []
}

test('what is wanted is put in its place, once', async () => {
  const ahead = begun()
  const loaded = await ahead.take(LIKELY)
  expect(pins.generations()).toEqual([loaded?.generation.id])
  expect(readdirSync(pins.maps).sort()).toEqual([...(loaded?.shared.maps.keys() ?? [])].sort())
  expect(existsSync(pins.apart().dir)).toBe(false)
  expect(await ahead.take(LIKELY)).toBeUndefined()
  ahead.begin(LIKELY)
  expect(await ahead.take(LIKELY)).toBeUndefined()
  loaded?.[Symbol.dispose]()
})

test('nothing stays of what is not wanted, has lost a pin, or nobody has asked for', async () => {
  expect(await begun().take(OTHER)).toBeUndefined()
  expect(pinned()).toEqual([])
  const damaged = begun()
  await expect.poll(() => pins.apart().generations().length, { timeout: 20_000 }).toBe(1)
  const [id = ''] = pins.apart().generations()
  const [first = ''] = readdirSync(pins.apart().generation(id))
  rmSync(join(pins.apart().generation(id), first))
  expect(await damaged.take(LIKELY)).toBeUndefined()
  expect(pinned()).toEqual([])
  const lost = begun()
  await expect.poll(() => pins.apart().generations().length, { timeout: 20_000 }).toBe(1)
  rmSync(pins.apart().map('np_ct'))
  expect(await lost.take(LIKELY)).toBeUndefined()
  expect(pinned()).toEqual([])
  await begun().end()
  expect(pinned()).toEqual([])
})

test('what cannot be loaded is nobody else’s failure', async () => {
  const objects = mkdtempSync(join(tmpdir(), 'np-objects-'))
  expect(await begun(objects).take(LIKELY)).toBeUndefined()
  rmSync(objects, { recursive: true })
  expect(pinned()).toEqual([])
})

test('nothing is begun where anything is pinned', async () => {
  pins.prepare()
  mkdirSync(join(pins.programs, 'of-another-version'))
  expect(await begun().take(LIKELY)).toBeUndefined()
  expect(pinned()).toEqual(['programs/of-another-version'])
})
