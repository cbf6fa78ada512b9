// SPDX-License-Identifier: Apache-2.0
/** Names by which runs are compared, and what one more node costs. Layer: test. */
import { expect, test } from 'vitest'
import type { FanOutFigure, ScaleFigure, ScaleFigures } from '../../../bench/scale/result.ts'
import { nodeCost, scaleControl } from '../../../bench/scale/results.ts'
import { notAhead, scaleTables } from '../../../bench/scale/tables.ts'

const ours: ScaleFigure = {
  contender: 'netplane',
  syncs: [1.2345, 1.1, 2].map((seconds) => ({ seconds, cpuMs: 1500 })),
  memoryMb: { now: 120.04, peak: 150 },
  changeMs: [7, 8, 9],
  toldMs: [4, 5, 6],
  changeCpuMs: 2.345,
}
const theirs: ScaleFigure = { ...ours, contender: 'kube-proxy', syncs: [{ seconds: 12.345, cpuMs: 1500 }], changeMs: [80, 160, 240] }

/** A server that needs 5 ms for a change, and 20 µs and 3 KB for each node that hears of it. */
function watching(watchers: number): FanOutFigure {
  return {
    watchers,
    beginCpuMs: 7 * watchers,
    memoryMb: 400 + watchers,
    idleCpuMsPerSecond: 10,
    idleBytesPerSecond: 0,
    changeCpuMs: 5 + 0.02 * watchers,
    changeBytes: 3000 * watchers,
    networkCpuMs: 5 + 0.01 * watchers,
    networkBytes: 1000 * watchers,
    reportCpuMs: 6 + 0.03 * watchers,
    reportBytes: 9000 * watchers,
  }
}

const figures: ScaleFigures = {
  services: 1000,
  objects: 4200,
  loadSeconds: 60,
  servicesAlone: { ...ours, memoryMb: { now: 100, peak: 110 } },
  contenders: [ours, theirs],
  lists: [
    { packed: false, cpuMs: 200, bytes: 9_800_000 },
    { packed: true, cpuMs: 150, bytes: 2_300_000 },
  ],
  fanOut: [0, 50, 100, 200].map(watching),
}

test('our figures have the name of the size, the peer’s its own name behind it', () => {
  const { control, noise } = scaleControl(figures)
  expect(control).toMatchObject({
    'scale_sync_s.1k': 1.1,
    'scale_sync_s.1k.kube-proxy': 12.345,
    'scale_rss_mb.1k': 120,
    'scale_rss_mb.1k.services': 100,
    'scale_change_ms_p50.1k': 8,
    'scale_change_ms_p50.1k.kube-proxy': 160,
    'scale_change_ms_p99.1k': 8.98,
    'scale_told_ms_p50.1k': 5,
    'fan_out_change_cpu_us.1k': 20,
    'fan_out_change_bytes.1k': 3000,
    'fan_out_network_cpu_us.1k': 10,
    'fan_out_network_bytes.1k': 1000,
    'fan_out_report_cpu_us.1k': 30,
    'fan_out_report_bytes.1k': 9000,
    'fan_out_packed_list_mb.1k': 2.3,
  })
  expect(noise['scale_sync_s.1k']).toEqual({ low: 1.1, high: 2 })
  expect(noise['scale_change_ms_p50.1k']).toEqual({ low: 7.5, high: 8.5 })
})

test('one more node costs what the line through all of them rises by', () => {
  const cost = nodeCost(figures.fanOut)
  expect(cost.beginCpuMs).toBeCloseTo(7)
  expect(cost.memoryMb).toBeCloseTo(1)
  expect(cost.changeCpuMs).toBeCloseTo(0.02)
  expect(cost.changeBytes).toBeCloseTo(3000)
})

test('results say what kube-proxy is not behind in: all of it with services alone; with all of the cluster start, changes and CPU', () => {
  const less = { ...theirs, memoryMb: { now: 105, peak: 105 } }
  expect(notAhead({ ...figures, contenders: [ours, { ...theirs, changeCpuMs: 20 }] })).toEqual([])
  expect(notAhead({ ...figures, contenders: [ours, less] })).toEqual([
    "resident memory at the most, MB, with services alone: kube-proxy's is 0.95 times that, not 1",
  ])
  expect(notAhead({ ...figures, contenders: [ours, { ...theirs, changeMs: [4, 4, 10] }], servicesAlone: theirs })).toEqual([
    "a changed EndpointSlice, from its write to the lookup, ms, p50, with services alone: kube-proxy's is 0.03 times that, not 1",
    "the same, p99, with services alone: kube-proxy's is 0.04 times that, not 1",
    "a changed EndpointSlice, from its write to the lookup, ms, p50, with all: kube-proxy's is 0.50 times that, not 1",
  ])
  expect(notAhead({ ...figures, contenders: [ours] })).toHaveLength(7 + 4)
})

test('tables have both contenders side by side, then 5,000 nodes', () => {
  const [contenders, , nodes] = scaleTables(figures)
  expect(contenders?.rows[0]).toEqual(['in sync after its start, s', '12.35', '1.10', '11.2', '≥ 1', '1.10', '11.2', '≥ 0.8'])
  expect(nodes?.rows.slice(0, 4)).toEqual([
    ['watches begin', '7.000', '0.0', '35.00', '0'],
    ['a changed slice', '0.020', '3.0', '0.10', '15'],
    ['a changed NodeNetwork', '0.010', '1.0', '0.05', '5'],
    ["a kubelet's report", '0.030', '9.0', '0.15', '45'],
  ])
})
