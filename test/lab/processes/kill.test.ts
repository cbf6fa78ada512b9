// SPDX-License-Identifier: Apache-2.0
/** Agents killed at any moment, also while they start, again and again under traffic: nothing is lost, no
 * connection refused. Layer: test. */
import { describe, expect, test } from 'vitest'
import { LOAD, NODES, RESOURCES } from '../../../bench/loss/cluster.ts'
import { killAgents, moments } from '../../../lab/processes/kill.ts'
import { Lab } from '../../../lab/lab.ts'
import { underLoad } from '../../../lab/traffic/load.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const KILLS = 20
const agentCommand = programCommand('agent')

/** What each start of an agent found to write, by table, from its own log. */
function written(log: string): string[] {
  const lines = log.split('\n').filter((line) => line.includes('"dataplane.adopted"'))
  return lines.map((line) => /"written":(\{[^}]*\})/.exec(line)?.[1] ?? line)
}

test('the moments are the same in every run, from at once to well after a start', () => {
  const take = (generator = moments(7)): number[] => Array.from({ length: 200 }, () => generator.next().value)
  expect(take()).toEqual(take())
  expect(Math.min(...take())).toBeLessThan(50)
  expect(Math.max(...take())).toBeGreaterThan(1450)
})

describe('killed at any moment', () => {
  test(`${KILLS} times during traffic: nothing is lost or refused, and a start finds nothing to write`, async () => {
    await using lab = await Lab.up({ name: 'tkill', resources: RESOURCES, agentCommand })
    const starts = NODES.map((node) => written(lab.log(node)).length)
    const { streams, requests } = await underLoad(lab, LOAD, () => killAgents(lab, KILLS))

    expect(streams).toHaveLength(8)
    for (const stream of streams) {
      expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
      expect(stream.received).toBeGreaterThan(1000)
    }
    expect(requests).toHaveLength(4)
    for (const result of requests) {
      expect(result, JSON.stringify(result)).toMatchObject({ refused: 0, reset: 0, timeouts: 0, errors: {}, pods: { 'web-1': result.ok } })
      expect(result.ok).toBeGreaterThan(100)
    }
    for (const [at, node] of NODES.entries()) {
      const later = written(lab.log(node)).slice(starts[at])
      expect(later.length, lab.log(node)).toBeGreaterThan(0)
      expect(new Set(later)).toEqual(new Set(['{}']))
    }
  })
})
