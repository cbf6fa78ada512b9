// SPDX-License-Identifier: Apache-2.0
/** Shared maps and generations of programs in a private bpffs: first start, restart, change, damage. Layer: test. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap, BpfProgram } from '#native'
import { ANY_V4 } from '#lib/base/ip.ts'
import type { Knobs, MapSizes } from '#agent/compile/desired.ts'
import type { Features } from '#agent/dataplane/programs/kernel-features.ts'
import { probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { nodeConfig } from '#agent/dataplane/programs/node-config.ts'
import type { OpenObject } from '#agent/dataplane/programs/objects.ts'
import { openObject, setKnobs } from '#agent/dataplane/programs/objects.ts'
import { ensureMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { findType, typeById } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { dropGenerations, ensureGeneration } from '#agent/dataplane/programs/generation.ts'
import { KNOBS, SIZES } from '../../support/knobs.ts'
import { objectPath } from '../../../testkit/packets/objects.ts'
import { TIMEOUTS } from '../../support/flow-entries.ts'

/** Where it is no matter which: the verifier takes seconds for the others. */
const SMALL = ['connect']

const features = probeFeatures()
let pins: Pins
const cleanups: (() => void)[] = []

beforeEach(() => {
  const parent = mkdtempSync('/sys/fs/bpf/np-test-')
  pins = new Pins(join(parent, 'netplane'))
  cleanups.push(() => rmSync(parent, { recursive: true }))
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

interface Started {
  readonly id: string
  readonly adoptedProgram: boolean
  readonly adoptedMaps: readonly string[]
  readonly programs: ReadonlyMap<string, { readonly id: number }>
}

/** What the agent does at start, and letting go of it all again as when it is killed. */
async function start(
  change: { readonly knobs?: Knobs; readonly sizes?: MapSizes; readonly features?: Features; readonly only?: readonly string[] } = {},
): Promise<Started> {
  const objects: OpenObject[] = []
  try {
    for (const name of ['tc', 'connect'] as const)
      if (change.only?.includes(name) ?? true) objects.push(openObject({ name, path: objectPath(name) }))
    using shared = await ensureMaps({ pins, objects, sizes: change.sizes ?? SIZES, timeouts: TIMEOUTS })
    const used = change.features ?? features
    using generation = await ensureGeneration({
      pins,
      objects,
      knobs: nodeConfig({ knobs: change.knobs ?? KNOBS, mapSizes: change.sizes ?? SIZES }, used),
      features: used,
      maps: shared.maps,
    })
    const programs = new Map([...generation.programs].map(([name, { id }]) => [name, { id }]))
    return { id: generation.id, adoptedProgram: generation.adopted, adoptedMaps: shared.adopted, programs }
  } finally {
    for (const opened of objects) opened.object.close()
  }
}

describe('generations', () => {
  test('first start pins all maps and programs; a restart adopts them all and loads nothing', async () => {
    const first = await start()
    expect([first.adoptedProgram, first.adoptedMaps]).toEqual([false, []])
    expect(readdirSync(pins.maps).sort()).toEqual(Object.keys(catalogue).sort())
    expect(readdirSync(pins.programs)).toEqual([first.id])
    const folder = readdirSync(pins.generation(first.id))
    expect(folder).toEqual(expect.arrayContaining(['tc-from_workload', 'tc-slow', 'tc-np_tail', 'connect-connect4']))

    const second = await start()
    expect([second.adoptedProgram, second.adoptedMaps.length]).toEqual([true, Object.keys(catalogue).length])
    expect([second.id, second.programs]).toEqual([first.id, first.programs])
  })

  test('other knobs are another generation beside the first, until the agent drops that', async () => {
    const first = await start({ only: SMALL })
    const other = { only: SMALL, knobs: { ...KNOBS, tunnelVni: 78 } }
    const second = await start(other)
    expect(second.adoptedProgram).toBe(false)
    expect(second.adoptedMaps.toSorted()).toEqual(readdirSync(pins.maps).sort())
    expect(readdirSync(pins.programs).sort()).toEqual([first.id, second.id].sort())
    expect(dropGenerations(pins, second.id)).toEqual([first.id])
    expect(readdirSync(pins.programs)).toEqual([second.id])
    expect((await start(other)).adoptedProgram).toBe(true)
  })

  test('a generation that lost a pin is left as it is, and a whole one put beside it', async () => {
    const first = await start({ only: SMALL })
    rmSync(join(pins.generation(first.id), 'connect-connect4'))
    const second = await start({ only: SMALL })
    expect([second.id, second.adoptedProgram]).toEqual([`${first.id}-1`, false])
    expect((await start({ only: SMALL })).id).toBe(second.id)
    expect(dropGenerations(pins, second.id)).toEqual([first.id])
  })

  test('what a crash left half done is removed', async () => {
    const first = await start({ only: SMALL })
    mkdirSync(pins.newGeneration('0123'))
    const left = BpfMap.create({ name: 'np_ct', type: 1, keySize: 4, valueSize: 4, maxEntries: 1 })
    left.pin(pins.newMap('np_ct'))
    left.close()
    expect((await start({ only: SMALL })).adoptedProgram).toBe(true)
    expect([readdirSync(pins.programs), readdirSync(pins.maps).includes('new-np_ct')]).toEqual([[first.id], false])
  })

  test('the tail-call array is filled and stays so with no process holding them', async () => {
    const { id } = await start()
    const map = BpfMap.openPin(join(pins.generation(id), 'tc-np_tail'))
    const slot = (at: number): number => {
      const key = Buffer.alloc(4)
      key.writeUInt32LE(at)
      return map.lookup(key)?.readUInt32LE() ?? 0
    }
    expect(Array.from({ length: 5 }, (_, at) => slot(at) > 0)).toEqual(Array(5).fill(true))
    map.close()
  })

  test('a kernel without the newer helpers and hooks gets programs without them', async () => {
    const floor: Features = {
      ...features,
      redirect_peer: 'no',
      redirect_neigh: 'no',
      ktime_get_coarse_ns: 'no',
      getpeername4: 'no',
      getpeername6: 'unknown',
    }
    const { programs } = await start({ features: floor })
    expect([...programs.keys()]).toEqual(expect.arrayContaining(['tc.from_workload', 'connect.connect4']))
    expect([...programs.keys()].filter((name) => name.includes('getpeername'))).toEqual([])
  })

  test('objects may be left out', async () => {
    const { programs } = await start({ only: ['tc'] })
    expect([...programs.keys()].filter((name) => name.startsWith('connect'))).toEqual([])
    expect(readdirSync(pins.maps)).not.toContain('np_sockets')
  })

  test('a folder that is on no bpffs is refused with a reason of its own', async () => {
    const folder = mkdtempSync('/tmp/netplane-no-bpffs-')
    cleanups.push(() => rmSync(folder, { recursive: true }))
    // /sys/fs is sysfs: mkdir in it fails in a way of its own
    for (const place of [folder, join(folder, 'deep', 'netplane'), '/sys/fs/netplane']) {
      pins = new Pins(place)
      await expect(start()).rejects.toMatchObject({ code: 'UNSUPPORTED', feature: 'bpffs' })
    }
  })

  test('a program that the verifier refuses is an error with its log', async () => {
    // a map with shorter keys in place of np_frontends: looking into it would read beyond them
    const objects = [openObject({ name: 'tc', path: objectPath('tc') })]
    cleanups.push(() => objects.forEach(({ object }) => object.close()))
    const shared = await ensureMaps({ pins, objects, sizes: SIZES, timeouts: TIMEOUTS })
    cleanups.push(() => shared[Symbol.dispose]())
    const wrong = BpfMap.create({ name: 'np_frontends', type: 1, keySize: 4, valueSize: 4, maxEntries: 1 })
    cleanups.push(() => wrong.close())
    const maps = new Map(shared.maps).set('np_frontends', wrong)
    const attempt = ensureGeneration({ pins, objects, knobs: nodeConfig({ knobs: KNOBS, mapSizes: SIZES }, features), features, maps })
    await expect(attempt).rejects.toMatchObject({
      code: 'PROGRAM',
      program: 'tc',
      verifierLog: expect.stringContaining('invalid') as string,
    })
    expect(readdirSync(pins.programs)).toEqual([])
  })
})

describe('objects', () => {
  test('a file that is no object names itself', () => {
    const folder = mkdtempSync('/tmp/netplane-object-')
    cleanups.push(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'bad.o'), 'not an object')
    expect(() => openObject({ name: 'bad', path: join(folder, 'bad.o') })).toThrow(/program bad: open/)
  })

  test('knobs lie where C reads them', () => {
    const opened = openObject({ name: 'tc', path: objectPath('tc') })
    cleanups.push(() => opened.object.close())
    const bytes = setKnobs(opened, nodeConfig({ knobs: { ...KNOBS, nodeV4: ANY_V4 }, mapSizes: SIZES }, features))
    expect(opened.object.rodata()).toEqual(bytes)
    const variables = findType(opened.btf, 'section', '.rodata')?.variables ?? []
    const cfg = variables.find(({ type }) => typeById(opened.btf, type).name === 'cfg')?.offset ?? -1
    const fields = structLayout(opened.btf, 'node_cfg').fields
    const offset = (name: string): number => cfg + (fields.find((field) => field.name === name)?.offset ?? -1)
    expect(bytes.subarray(cfg, cfg + 16), 'no address is all zero').toEqual(Buffer.alloc(16))
    expect(bytes.readBigUInt64LE(offset('timeout_tcp_syn'))).toBe(1_000_000_000n)
    expect([bytes.readUInt32LE(offset('tunnel_vni')), bytes.readUInt16BE(offset('tunnel_port'))]).toEqual([77, 4789])
  })
})

test('programs of an adopted generation are the ones that are pinned', async () => {
  const { id, programs } = await start()
  const pinned = BpfProgram.openPin(join(pins.generation(id), 'tc-from_workload'))
  expect(pinned.info()).toMatchObject({ id: programs.get('tc.from_workload')?.id, name: 'from_workload' })
  pinned.close()
  rmdirSync(pins.links)
})
