// SPDX-License-Identifier: Apache-2.0
/** The form of latest.json: others compare runs by these names. Layer: test. */
import { describe, expect, test } from 'vitest'
import {
  controlResults,
  lossResults,
  mergeLoss,
  packetResults,
  parseResults,
  pathResults,
  type Results,
} from '../../../bench/base/results.ts'
import type { ControlFigure, PolicyFigure } from '../../../bench/control/result.ts'

const control: ControlFigure = {
  services: 10_000,
  coldSeconds: [3.1234, 2.9, 3.4],
  coldCpuMs: [2800.04, 2700, 2900],
  warmSeconds: [1.5, 1.4, 1.6],
  warmCpuMs: [1400, 1300, 1500],
  warmWrites: 0,
  changeMs: { p25: 2, p50: 3.456, p75: 4, p99: 9.876 },
  changeCpuMs: 1.234,
  idleCpuPercent: 0.456,
  memoryMb: { now: 180.04, peak: 200 },
  mapMb: { total: 130.06, flows: 110 },
}

const policy: PolicyFigure = {
  pods: 10_000,
  coldSeconds: [3.1, 2.9, 2.8],
  coldCpuMs: [3600, 3700, 3500],
  podMs: { p25: 4, p50: 5.123, p75: 6, p99: 11 },
  podCpuMs: 3.456,
  memoryMb: { now: 175.01, peak: 320 },
  mapMb: 25.47,
}

describe('packets', () => {
  test('net, median and the empty program, to a tenth of a nanosecond', () => {
    const { packet, noise } = packetResults([
      { id: 'pod-pod.est.v6', note: '', net: 62.04, median: 63, p90: 70.26, baseline: 41, hooks: [] },
    ])
    expect(packet).toEqual({ 'pod-pod.est.v6': { net_ns: 62, baseline_ns: 41, median_ns: 63 } })
    expect(noise).toEqual({ 'pod-pod.est.v6': { p90_ns: 70.3 } })
  })
})

describe('paths', () => {
  test('ours at the top, the others as peers', () => {
    const interval = { low: 0.91, high: 0.95 }
    const { path, noise } = pathResults([
      { path: 'pod-local', contender: 'netplane', measure: 'rr_p50', ratio: 0.93, interval, absolute: 15_000 },
      { path: 'pod-local', contender: 'netplane', measure: 'pps', ratio: 1.2, interval, absolute: 150_000 },
      { path: 'pod-local', contender: 'iptables', measure: 'rr_p50', ratio: 1.08, interval, absolute: 17_000 },
    ])
    expect(path).toEqual({ 'pod-local': { rr_p50: 0.93, pps: 1.2, peers: { iptables: { rr_p50: 1.08 } } } })
    expect(noise['pod-local']?.rr_p50).toEqual(interval)
  })
})

describe('control plane', () => {
  test('a name for each size', () => {
    const { control: values } = controlResults(
      [
        { ...control, services: 0, memoryMb: { now: 90, peak: 95 } },
        { ...control, mapMb: { total: 141.2, flows: 115 } },
      ],
      [],
    )
    expect(values).toEqual({
      'rss_mb.idle': 90,
      'rss_mb.10k': 180,
      map_mb: 130.1,
      'map_mb.10k': 141.2,
      'cold_sync_s.10k': 3.123,
      'warm_restart_s.10k': 1.5,
      'warm_writes.10k': 0,
      'change_ms_p50.10k': 3.46,
      'change_ms_p99.10k': 9.88,
      'change_cpu_ms.10k': 1.23,
      'readback_cpu_percent.10k': 0.46,
    })
  })

  test('how far the rounds were apart', () => {
    expect(controlResults([control], []).noise['cold_sync_s.10k']).toEqual({ low: 2.9, high: 3.4, cpu_ms: 2800 })
  })
})

test('results have policy beside services', () => {
  const { control: values, noise } = controlResults([], [policy])
  expect(values).toEqual({
    'policy_sync_s.10k': 2.9,
    'policy_pod_ms.10k': 5.12,
    'policy_pod_ms_p99.10k': 11,
    'policy_rss_mb.10k': 175,
    'policy_map_mb.10k': 25.5,
  })
  expect(noise['policy_pod_ms.10k']).toEqual({ low: 4, high: 6, cpu_ms: 3.46 })
  expect(noise['policy_rss_mb.10k']).toEqual({ low: 175, high: 320 })
})

test('results have lists', () => {
  const clientNode = { cpuSeconds: [2.4, 2.6, 2.5], peakMb: [390, 391, 389] }
  const list = { services: 10_000, cpuSeconds: [0.95123, 0.91, 1.1], peakMb: [158.04, 161, 157], clientNode }
  const { control: values, noise } = controlResults([], [], [list])
  expect(values).toEqual({
    'list_cpu_s.10k': 0.951,
    'list_peak_mb.10k': 158,
    'client_node_list_cpu_s.10k': 2.5,
    'client_node_list_peak_mb.10k': 390,
  })
  expect(noise['list_cpu_s.10k']).toEqual({ low: 0.91, high: 1.1 })
})

describe('losses', () => {
  const none = { lost: 0, refused: 0, socketDrops: 0, softnetDrops: 0 }

  test('of the fault by name, all else as noise', () => {
    const { loss, noise } = lossResults([
      { id: 'agent-kill', runs: 20, fault: { ...none, lost: 3, socketDrops: 2 }, control: { ...none, refused: 1 } },
    ])
    expect(loss).toEqual({ 'agent-kill': { runs: 20, lost: 3, refused: 0 } })
    expect(noise).toEqual({
      'agent-kill': { socket_drops: 2, softnet_drops: 0, control: { lost: 0, refused: 1, socket_drops: 0, softnet_drops: 0 } },
    })
  })

  test('of each thing that was removed, with the time until it was back', () => {
    const removed = { link: { ...none, lost: 4, backMs: 612.34 } }
    const { loss } = lossResults([{ id: 'foreign-removal', runs: 1, fault: { ...none, lost: 4 }, removed, control: none }])
    expect(loss).toEqual({
      'foreign-removal': { runs: 1, lost: 4, refused: 0, removed: { link: { lost: 4, refused: 0, back_ms: 612.3 } } },
    })
  })

  const facts = { kernel: '6.18.0', cores: 2, cpu: 'a CPU', date: '', commit: 'old' }
  const before: Results = {
    facts,
    packet: {},
    path: {},
    control: { map_mb: 130 },
    loss: { upgrade: { runs: 10, lost: 0, refused: 0 } },
    noise: { load: [1, 1], packet: {}, path: {}, control: {} },
  }
  const now: Results = {
    ...before,
    facts: { ...facts, commit: 'new' },
    control: { map_mb: 120 },
    loss: { 'agent-kill': { runs: 20, lost: 0, refused: 0 } },
  }

  test('that were not counted now stay', () => {
    const merged = mergeLoss(now, before, false)
    expect(Object.keys(merged.loss)).toEqual(['upgrade', 'agent-kill'])
    expect(merged).toMatchObject({ facts: { commit: 'new' }, control: { map_mb: 120 } })
  })

  test('alone leave the rest of the file as it was', () => {
    const merged = mergeLoss(now, before, true)
    expect(Object.keys(merged.loss)).toEqual(['upgrade', 'agent-kill'])
    expect(merged).toMatchObject({ facts: { commit: 'old' }, control: { map_mb: 130 } })
  })
})

test('a file that is no result is refused', () => {
  expect(() => parseResults('{"facts": {}}')).toThrow('benchmark result')
})
