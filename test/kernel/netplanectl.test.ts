// SPDX-License-Identifier: Apache-2.0
/** netplanectl before pins that it can read, and those that it cannot. Layer: test. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap, BpfProgram, monotonicNs } from '#native'
import { openObject } from '#agent/dataplane/programs/objects.ts'
import { ensureMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { commands } from '../../cli/commands.ts'
import { FLOW_BYTES, flowEntry, TIMEOUTS } from '../support/flow-entries.ts'
import { objectPath } from '../../testkit/packets/objects.ts'
import { otherMaps } from '../support/other-maps.ts'
import { programCommand } from '../../testkit/base/program.ts'

/** entries of the flow table: several parts of a walk, several pages of a table */
const FLOWS = 10_000

let pins: Pins
let parent: string

beforeEach(() => {
  parent = mkdtempSync('/sys/fs/bpf/np-ctl-')
  pins = new Pins(join(parent, 'netplane'))
})

afterEach(() => {
  rmSync(parent, { recursive: true })
})

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The whole command with the test's pins; `before` and `after` surround it in the shell. */
function run(line: string, { before = '', after = '' } = {}): Ended {
  const command = [...programCommand('cli'), ...line.split(' '), '--pins', dirname(pins.maps)]
  const { status, stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', `${before} "$@" ${after}`, 'bash', ...command], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  return { status, stdout, stderr }
}

/** All maps as the agent makes them. */
async function pinAll(): Promise<void> {
  pins.prepare()
  const opened = openObject({ name: 'tc', path: objectPath('tc') })
  const sizes = { conntrack: 2 * FLOWS, frontends: 100, backends: 200, affinity: 100, addrs: 300, live: 200 }
  const shared = await ensureMaps({ pins, objects: [opened], sizes, timeouts: TIMEOUTS })
  shared[Symbol.dispose]()
  opened.object.close()
}

function fill(): void {
  const map = BpfMap.openPin(pins.map('np_ct'))
  const [keys, values] = [Buffer.alloc(FLOWS * FLOW_BYTES.key), Buffer.alloc(FLOWS * FLOW_BYTES.value)]
  const seen = monotonicNs() / 1e6
  for (let number = 0; number < FLOWS; number++) {
    const { key, value } = flowEntry({ number: number + 1, seen })
    keys.set(key, number * FLOW_BYTES.key)
    values.set(value, number * FLOW_BYTES.value)
  }
  map.updateBatch(keys, values, FLOWS)
  map.close()
}

describe('pins of its own version', () => {
  beforeEach(pinAll)

  test.each(commands.map(({ name }) => name))('%s of maps with nothing in them', (name) => {
    expect(run(`${name} --json`)).toMatchObject({ status: 0, stderr: '', stdout: '[]\n' })
    expect(run(name).stdout).toMatch(/^[A-Z ]+\n$/)
  })

  test('many flows, each once; a reader of the first line alone breaks nothing', () => {
    fill()
    const flows: unknown = JSON.parse(run('bpf conntrack --json').stdout)
    const ports = new Set(Array.isArray(flows) ? flows.map((flow) => JSON.stringify(flow)) : [])
    expect([ports.size, Array.isArray(flows) && flows.length]).toEqual([FLOWS, FLOWS])
    expect(run('bpf conntrack').stdout.split('\n')).toHaveLength(FLOWS + 2)
    expect(run('bpf conntrack', { after: '| head -1' })).toMatchObject({ status: 0, stderr: '' })
  })

  test('netplanectl without the rights says that only root can read the maps', () => {
    const { status, stdout, stderr } = run('bpf nat', { before: 'setpriv --inh-caps=-all --bounding-set=-all' })
    expect([status, stdout, stderr]).toEqual([1, '', 'netplanectl: the maps of the data plane can only be read by root\n'])
  })

  test('one that is missing', () => {
    rmSync(pins.map('np_routes'))
    const { status, stderr } = run('bpf routes')
    expect([status, stderr]).toEqual([
      1,
      `netplanectl: there is no map np_routes in ${pins.maps}: the agent that pinned the others is of another version\n`,
    ])
  })
})

test('netplanectl says that no maps are pinned', () => {
  const { status, stdout, stderr } = run('bpf nat')
  expect([status, stdout, stderr]).toEqual([
    1,
    '',
    `netplanectl: there is nothing in ${pins.maps}: no agent has run on this node, or it was cleaned up (--pins: another folder)\n`,
  ])
})

test('a map of another version is refused, and both sides are named', async () => {
  pins.prepare()
  const object = await otherMaps([['__u8 state;', '__u16 state;']], { np_ct: 100, np_frontends: 100 })
  const map = object.map('np_ct')
  map.pin(pins.map('np_ct'))
  map.close()
  object.close()
  const { status, stdout, stderr } = run('bpf conntrack')
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(
    /^netplanectl: map np_ct was made by an agent of another version than netplanectl \d\S+: struct ct_value\.state: u8 in the shape, __u16 in the object /,
  )
})

test('a pin that is no map', () => {
  pins.prepare()
  const program = BpfProgram.load({ type: 3, instructions: Buffer.from('b700000000000000' + '9500000000000000', 'hex') })
  program.pin(pins.map('np_counters'))
  program.close()
  const { status, stderr } = run('bpf counters')
  expect(status).toBe(1)
  expect(stderr).toContain(`${pins.map('np_counters')} is no pinned map`)
})
