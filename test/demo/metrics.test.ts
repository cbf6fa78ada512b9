// SPDX-License-Identifier: Apache-2.0
/** Reading metrics pages. */
import { expect, test } from 'vitest'
import { growth, parseMetrics, total } from '../../demo/metrics.ts'

const PAGE = `# HELP netplane_packets_total What the programs counted.
# TYPE netplane_packets_total counter
netplane_packets_total{event="tunnel_sent"} 4
netplane_packets_total{event="connect"} 0

netplane_packets_total_created 7
netplane_synced 1
`

test('samples are found by name and labels', () => {
  const metrics = parseMetrics(PAGE)
  expect(metrics.get('netplane_synced')).toBe(1)
  expect(metrics.get('netplane_packets_total{event="tunnel_sent"}')).toBe(4)
  expect(metrics.size).toBe(4)
})

test('totals and growth are sums over labels', () => {
  const before = parseMetrics(PAGE)
  const after = parseMetrics(PAGE.replace('connect"} 0', 'connect"} 3'))
  expect(total(after, 'netplane_packets_total')).toBe(7)
  expect(growth(before, after, 'netplane_packets_total')).toEqual(['connect +3'])
})
