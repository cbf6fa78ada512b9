// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { describe, expect, test } from 'vitest'
import type { Results } from '../../../bench/base/results.ts'
import { asMarkdown, asText, factsLine, tablesOf } from '../../../bench/base/tables.ts'

const results: Results = {
  facts: { kernel: '6.18.0', cores: 2, cpu: 'a CPU', date: '2026-11-21T08:00:00.000Z', commit: 'abc1234' },
  packet: { 'pod-pod.est': { net_ns: 65, baseline_ns: 41, median_ns: 68 } },
  path: {
    'pod-local': { rr_p50: 0.93, crr_p50: 1.01, pps: 1.2, peers: { iptables: { rr_p50: 1.08 }, nftables: {} } },
    'pod-remote': { rr_p50: 1.05, peers: {} },
  },
  control: { 'cold_sync_s.1k': 2.9, 'rss_mb.10k': 340, 'client_node_list_cpu_s.10k': 5.1 },
  loss: {
    'agent-kill': { runs: 20, lost: 0, refused: 0 },
    upgrade: { runs: 10, lost: 1, refused: 0 },
    'foreign-removal': {
      runs: 4,
      lost: 2,
      refused: 0,
      removed: {
        link: { lost: 0, refused: 0, back_ms: 480.2 },
        'program-pin': { lost: 0, refused: 0, back_ms: 1386 },
        route: { lost: 2, refused: 0, back_ms: 3 },
        frontend: { lost: 0, refused: 0, back_ms: 31_000 },
      },
    },
  },
  noise: {
    loss: { 'agent-kill': { socket_drops: 0, softnet_drops: 2, control: { lost: 0, refused: 1, socket_drops: 0, softnet_drops: 0 } } },
    load: [0.5, 1.25],
    packet: { 'pod-pod.est': { p90_ns: 71 } },
    path: { 'pod-local': { rr_p50: { low: 0.9, high: 0.94 }, crr_p50: { low: 0.9, high: 1.1 }, pps: { low: 1.15, high: 1.3 } } },
    control: { 'cold_sync_s.1k': { low: 2.8, high: 3.2, cpu_ms: 1300 } },
  },
}

test('every table is there but those with nothing in them', () => {
  expect(tablesOf({ ...results, path: {} })).toHaveLength(3)
  expect(tablesOf(results).map(asText).join('\n')).toMatchInlineSnapshot(`
    "Packet cost, ns: program minus an empty one, least of the rounds
      packet       net  median  p90  empty   goal  of goal  at the goals' pace
      pod-pod.est   65      68   71     41  ≤ 130     50 %                38 %

    Paths, as ratios to the plain path by the same hops: times and CPU below 1 are better, rates above
      path                              what  netplane       95 %  iptables  nftables    goal            met
      pod-local            request, response      0.93  0.90–0.94      1.08            ≤ 0.95            yes
      pod-local   connect, request, response      1.01  0.90–1.10                      ≤ 1.02  in the middle
      pod-local         64-byte UDP a second      1.20  1.15–1.30                       ≥ 1.1            yes
      pod-remote           request, response      1.05                                 ≤ 1.02             no

    Control plane: 10 endpoints a service
      what                        value    range  CPU ms   goal  met  at the goals' pace
      cold_sync_s.1k                2.9  2.8–3.2    1300    ≤ 2   no                1.45
      rss_mb.10k                    340                   ≤ 200   no
      client_node_list_cpu_s.10k    5.1

    Lost; beside it the same without the fault, and what sockets and processors dropped
      fault                                             runs  packets  connections  without  dropped         goal  met
      agent-kill                                          20        0            0    0 / 1    0 / 2            0  yes
      upgrade                                             10        1            0                              0   no
      foreign-removal                                      4        2            0                              0   no
      foreign-removal: link, back after 480 ms             1        0            0                     0, 1000 ms  yes
      foreign-removal: program-pin, back after 1386 ms     1        0            0                     0, 1000 ms   no
      foreign-removal: route, back after 3 ms              1        2            0                     0, 1000 ms   no
      foreign-removal: frontend, back after 31000 ms       1        0            0                    0, 60000 ms  yes
    "
  `)
})

describe('on a page', () => {
  test('numbers are to the right', () => {
    expect(asMarkdown({ title: 'T', head: ['a', 'b'], rows: [['x', '1']] })).toBe('**T**\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n')
  })

  test('where and how it was measured', () => {
    expect(factsLine(results)).toBe(
      '2026-11-21, commit abc1234, Linux 6.18.0, 2 × a CPU, load average 0.5 before and 1.3 after.' +
        " Times as on the machine of the goals: an empty program × 1.3, client-node's informers × 2.00 (the control plane's times divided by that would be its).",
    )
  })
})
