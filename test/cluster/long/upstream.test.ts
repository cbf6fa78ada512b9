// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' own tests of the network: all pass but those that docs/upstream-tests.md gives a reason for not being
 * run here. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { upstreamTests } from '../../../testkit/kubernetes/build/programs.ts'
import { listUpstream, runUpstream } from '../../../testkit/kubernetes/upstream.ts'
import { sharedCluster } from '../setup.ts'

/** Beginnings of names, each with what all of them may take; the last has the rest. */
const PARTS = [
  { part: 'Services', minutes: 60 },
  { part: 'Netpol', minutes: 90 },
  { part: '', minutes: 120 },
] as const

const PAGE = readFileSync(join(packageRoot(), 'docs/upstream-tests.md'), 'utf8').split('## On a real cluster')[1] ?? ''
/** Names in the table of those that cannot run here. */
const excused = new Set([...PAGE.matchAll(/^\| (\[sig-network\][^|]*) \|/gm)].map(([, name = '']) => name.trim()))
/** What the page says of each part of the suite: how many specs there are, and how many of them run. */
const counts = [...PAGE.matchAll(/^\| ([^|]+) \| (\d+) \| (\d+) \|/gm)].map(([, part = '', all, run]) => [part, Number(all), Number(run)])

const state: { names: readonly string[] } = { names: [] }

/** Which of them: the longest of `parts` that it begins with. */
function partOf(name: string, parts: readonly string[]): string {
  const matching = parts.filter((part) => name.startsWith(`[sig-network] ${part}`))
  return matching.toSorted((a, b) => b.length - a.length)[0] ?? ''
}

const runs = (name: string): boolean => !excused.has(name.trim())

beforeAll(async () => {
  state.names = await listUpstream(await sharedCluster(), await upstreamTests())
}, 10 * 60_000)

test('the page excuses what there is, and counts all', () => {
  const there = new Set(state.names.map((name) => name.trim()))
  expect([...excused].filter((name) => !there.has(name))).toEqual([])
  const parts = counts.map(([part]) => String(part))
  const found = Map.groupBy(state.names, (name) => partOf(name, parts))
  expect([...found].map(([part, names]) => [part, names.length, names.filter(runs).length]).toSorted()).toEqual(counts.toSorted())
})

test.each(PARTS)(
  "Kubernetes' own: $part",
  async ({ part, minutes }) => {
    const cluster = await sharedCluster()
    const parts = PARTS.map((entry) => entry.part)
    const names = state.names.filter((name) => runs(name) && partOf(name, parts) === part)
    await using stack = new AsyncDisposableStack()
    // services that ask a cloud for a balancer are in the rest: others say themselves what one would have said
    if (part === '') stack.use(await cluster.balance())
    const outcomes = await runUpstream(cluster, await upstreamTests(), { names, lanes: 3, timeoutMs: minutes * 60_000 })
    expect(
      outcomes.filter((outcome) => outcome.state !== 'passed').map(({ name, message }) => `${name}: ${message.slice(0, 400)}`),
    ).toEqual([])
    expect(outcomes).toHaveLength(names.length)
  },
  121 * 60_000,
)
