// SPDX-License-Identifier: Apache-2.0
/** Every object loads under every combination of knobs we ship, also as on a kernel without newer helpers and BTF;
 * counts are recorded. Layer: test. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import type { NodeCfg } from '#agent/maps/shapes.ts'
import type { LoadOptions, ObjectName } from '../../../testkit/packets/objects.ts'
import { loadObject, objectPath } from '../../../testkit/packets/objects.ts'
import { MOST_WORK, parseWork } from '../../support/verifier.ts'
import { HELPERS, kernelRelease, testCfg } from '../../../testkit/packets/runner.ts'

const KNOBS: Readonly<Record<ObjectName, readonly (keyof NodeCfg)[]>> = {
  tc: ['redirect_peer', 'redirect_neigh', 'coarse_clock', 'jiffies'],
  xdp: ['jiffies'],
  connect: ['connect_tcp', 'connect_udp'],
}
const OBJECTS: readonly ObjectName[] = ['tc', 'connect', 'xdp']
const records: {
  readonly object: string
  readonly knobs: string
  readonly program: string
  readonly verified: number
  readonly states: number
  readonly xlatedBytes: number
}[] = []

function combinations(object: ObjectName): NodeCfg[] {
  const base = testCfg({ redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true })
  return KNOBS[object].reduce<NodeCfg[]>(
    (all, knob) =>
      all.flatMap((cfg) => [
        { ...cfg, [knob]: 0 },
        { ...cfg, [knob]: 1 },
      ]),
    [base],
  )
}

async function loadAndRecord(object: ObjectName, options: LoadOptions, title: string): Promise<void> {
  const loaded = await loadObject(object, { ...options, statistics: true })
  for (const { name } of loaded.object.programs()) {
    const program = loaded.object.program(name)
    const { xlatedBytes } = program.info()
    const { instructions, states } = parseWork(loaded.told?.[name] ?? '') ?? { instructions: NaN, states: NaN }
    records.push({ object, knobs: title, program: name, verified: instructions, states, xlatedBytes })
    expect(instructions).toBeLessThan(MOST_WORK.instructions)
    expect(states).toBeLessThan(MOST_WORK.states)
    expect(xlatedBytes).toBeGreaterThan(0)
    program.close()
  }
  loaded.object.close()
}

describe.each(OBJECTS)('%s', (object) => {
  test('keeps its BTF when debug information is stripped', () => {
    expect(readFileSync(objectPath(object)).includes('.BTF')).toBe(true)
  })

  test.each(combinations(object).map((cfg) => [KNOBS[object].map((knob) => `${knob}=${String(cfg[knob])}`).join(' '), cfg] as const))(
    'loads with %s',
    async (title, cfg) => {
      await loadAndRecord(object, { cfg }, title)
    },
  )

  test('loads as on the oldest kernel: newer helpers gone, no kernel BTF', async () => {
    const cfg = testCfg({ redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false })
    const hide = existsSync('/sys/kernel/btf')
    if (hide) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', '/sys/kernel/btf'])
    try {
      await loadAndRecord(object, { cfg, stubHelpers: Object.values(HELPERS) }, 'oldest')
    } finally {
      if (hide) execFileSync('umount', ['/sys/kernel/btf'])
    }
  })
})

afterAll(() => {
  const folder = fileURLToPath(new URL('../../../build', import.meta.url))
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/verifier.json`, JSON.stringify({ kernel: kernelRelease(), records }, undefined, 1))
  const most = records.reduce((a, b) => (b.verified > a.verified ? b : a))
  console.log(
    `verifier: ${records.length} programs loaded; most work: ${most.object}.${most.program} (${most.knobs}) with ${most.verified} instructions, ${most.states} states`,
  )
})
