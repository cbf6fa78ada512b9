// SPDX-License-Identifier: Apache-2.0
/** Every packet case through the programs as this kernel runs them, and once more as the oldest supported would;
 * then those of a setting that is another program. Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { POD_TO_HOST_DROP, SOURCE_ANY, SOURCE_STRICT } from '#lib/base/bpf-constants.ts'
import type { Features, PacketRunner } from '../../testkit/packets/runner.ts'
import { HELPERS, packetRunner, setUpNamespace } from '../../testkit/packets/runner.ts'
import { casesFor } from './packets/all.ts'
import { copied } from './packets/headers/ecn.ts'
import { cases as martians, refused } from './packets/sources/martians.ts'
import { EGRESS_TABLE } from './packets/policy/egress.ts'
import { dropCases } from './packets/policy/own-node.ts'

const NEWEST: Features = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const OLDEST: Features = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }
/** On a node without host endpoints: nothing else is asked of it. */
const DROP = { pod_to_host: POD_TO_HOST_DROP, host_policy: 0, untracked: 0 }

beforeAll(() => setUpNamespace())

test('every file with packet cases is in the list of all.ts', () => {
  const folder = join(import.meta.dirname, 'packets')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const withCases = files.filter((file) => /^export const cases\b/m.test(readFileSync(join(folder, file), 'utf8')))
  expect(withCases.length).toBeGreaterThan(20)
  const list = readFileSync(join(folder, 'all.ts'), 'utf8')
  expect(withCases.filter((file) => !list.includes(`'./${file}'`))).toEqual([])
})

test('the page of policy has the table of what egress rules see that these cases hold', () => {
  const page = readFileSync(join(packageRoot(), 'docs/policy.md'), 'utf8')
  const [, table = ''] = page.split('| a pod asks | its egress rules see |\n|---|---|\n')
  expect(table.slice(0, table.indexOf('\n\n')).split('\n')).toEqual(EGRESS_TABLE.map(({ asks, sees }) => `| ${asks} | ${sees} |`))
})

for (const [title, features, stubs, knobs, cases] of [
  ['with every helper', NEWEST, [], {}, casesFor(NEWEST)],
  ['with the helpers of the oldest kernel only', OLDEST, Object.values(HELPERS), {}, casesFor(OLDEST)],
  ['where pods are not to reach their own node', NEWEST, [], DROP, dropCases],
  ['where the tunnel has the DSCP of what is inside', NEWEST, [], { tunnel_class: 0xff }, copied],
  ['where nothing is asked of routes back', NEWEST, [], { source_check: SOURCE_ANY }, martians],
  ['where sources must come by the device of their route', NEWEST, [], { source_check: SOURCE_STRICT }, refused],
] as const) {
  describe(title, () => {
    const opened: PacketRunner[] = []
    beforeAll(async () => {
      opened.push(await packetRunner(features, stubs, knobs))
    })
    afterAll(() => opened.forEach((runner) => runner.close()))

    test('every case runs whole on this kernel', () => {
      const cut = opened.flatMap((runner) => cases.filter((one) => !runner.runsWhole(one)).map(({ name }) => name))
      expect(cut).toEqual([])
    })

    test.each(cases.map((packetCase) => [packetCase.name, packetCase] as const))('%s', (_name, packetCase) => {
      for (const runner of opened) expect(runner.run(packetCase)).toBeUndefined()
    })
  })
}
