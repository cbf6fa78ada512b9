// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' own tests of the network: those that fail are the ones that docs/e2e.md gives a reason for. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/package.ts'
import { Cluster } from '../../kubernetes/cluster.ts'
import { upstreamTests } from '../../kubernetes/programs.ts'
import { runUpstream } from '../../kubernetes/upstream.ts'
import { CLUSTER } from '../setup.ts'

/** Parts of the suite, each with its bound in minutes. */
const PARTS = [
  { focus: String.raw`\[sig-network\] Services`, minutes: 45 },
  { focus: 'Netpol', minutes: 60 },
  { focus: 'Networking Granular Checks|EndpointSlice|HostPort|Conntrack', minutes: 45 },
] as const

/** They want a cloud, another machine to log in to, or what only some clusters have; policies are such a feature too, and ours. */
const SKIP = String.raw`Disruptive|\[Feature:[^N]|\[Feature:N[^e]|SCTP`

/** Names in the table of known failures. */
function known(): string[] {
  const page = readFileSync(join(packageRoot(), 'docs/e2e.md'), 'utf8')
  const [, section = ''] = page.split('## Known failures')
  return [...section.matchAll(/^\| (\[sig-network\][^|]*) \|/gm)].map(([, name = '']) => name.trim())
}

test.each(PARTS)(
  "Kubernetes' own: $focus",
  async ({ focus, minutes }) => {
    const cluster = await Cluster.open(CLUSTER)
    const outcomes = await runUpstream(cluster, await upstreamTests(), { focus, skip: SKIP, timeoutMs: minutes * 60_000 })
    expect(outcomes.filter(({ state }) => state === 'passed').length).toBeGreaterThan(0)
    const excused = new Set(known())
    const failed = outcomes.filter(({ state, name }) => state === 'failed' && !excused.has(name.trim()))
    expect(failed.map(({ name, message }) => `${name}: ${message.slice(0, 400)}`)).toEqual([])
  },
  61 * 60_000,
)
