// SPDX-License-Identifier: Apache-2.0
/** Agents killed at any moment, also while they start, again and again under traffic: established flows lose nothing. Layer: test. */
import { systemClock } from '#lib/base/clock.ts'
import { describe, expect, test } from 'vitest'
import { Lab } from '../../lab/lab.ts'
import { startFlow } from '../../lab/traffic.ts'

const NODES = ['node-a', 'node-b']
const KILLS = 20
/** From outside to a node port, and from a pod to the cluster address. */
const FLOWS = [
  { from: 'client', addresses: ['172.30.0.1', 'fd00:30::1'], port: 30080 },
  { from: 'shell-a', addresses: ['10.96.0.80', 'fd00:96::80'], port: 80 },
] as const
const PROTOS = ['udp', 'tcp'] as const
const agentCommand = [process.execPath, '--conditions=source', `${process.cwd()}/agent/main.ts`]

/** The same moments in every run: a failure can be looked at again. */
function* moments(seed: number): Generator<number, never> {
  let state = seed
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    yield (state / 0x1_0000_0000) * 1500
  }
}

/** What each start of an agent found to write, by table, from its own log. */
function written(log: string): string[] {
  const lines = log.split('\n').filter((line) => line.includes('"dataplane.adopted"'))
  return lines.map((line) => /"written":(\{[^}]*\})/.exec(line)?.[1] ?? line)
}

describe('killed at any moment', () => {
  test(`${KILLS} times during traffic: no packet of an established flow is lost, and a start finds nothing to write`, async () => {
    await using lab = await Lab.up({ name: 'tkill', resources: 'demo/manifests', agentCommand })
    const flows = await Promise.all(
      FLOWS.map(({ from, addresses, port }) =>
        startFlow(lab, { from, to: addresses.flatMap((address) => PROTOS.map((proto) => ({ proto, address, port }))) }),
      ),
    )
    const starts = NODES.map((node) => written(lab.log(node)).length)
    const when = moments(7)
    for (let kill = 0; kill < KILLS; kill++) {
      const node = NODES[kill % NODES.length] ?? ''
      await systemClock.sleep(when.next().value, new AbortController().signal)
      await lab.agents.stop(node, 'SIGKILL')
      await lab.agents.start(node)
    }
    await Promise.all(NODES.map((node) => lab.agents.waitReady(node)))
    const streams = (await Promise.all(flows.map((flow) => flow.stop()))).flatMap((result) => result.streams)

    expect(streams).toHaveLength(8)
    for (const stream of streams) {
      expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
      expect(stream.received).toBeGreaterThan(1000)
    }
    for (const [at, node] of NODES.entries()) {
      const later = written(lab.log(node)).slice(starts[at])
      expect(later.length, lab.log(node)).toBeGreaterThan(0)
      expect(new Set(later)).toEqual(new Set(['{}']))
    }
  })
})
