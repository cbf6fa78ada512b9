// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { pageOf } from '../../../bench/base/page.ts'
import type { Results } from '../../../bench/base/results.ts'

const results: Results = {
  facts: { kernel: '6.18.0', cores: 2, cpu: 'a CPU', date: '2026-11-21T08:00:00.000Z', commit: 'abc1234' },
  packet: {
    'pod-pod.est': { net_ns: 65, baseline_ns: 41, median_ns: 68 },
    'pod-pod.est.v6': { net_ns: 72.4, baseline_ns: 41, median_ns: 68 },
  },
  path: {
    'pod-local': { rr_p50: 0.93, pps: 1.2, peers: { iptables: { rr_p50: 1.08 } } },
    'nodeport-remote.dsr': { rr_p50: 1.02, peers: {} },
    'pod-remote-vxlan': {
      rr_p50: 1.1,
      tput: 0.99,
      tput_wire: 0.91,
      cpu_per_gbit_wire: 1.1,
      peers: { vxlan: { rr_p50: 1.3, tput_wire: 0.8 } },
    },
  },
  control: { 'cold_sync_s.1k': 1.9, 'rss_mb.10k': 165 },
  loss: { 'agent-kill': { runs: 20, lost: 0, refused: 0 }, upgrade: { runs: 10, lost: 1, refused: 0 } },
  noise: { load: [0.5, 1.25], packet: {}, path: {}, control: {} },
}

test('the page has five short tables', () => {
  expect(pageOf(results)).toMatchInlineSnapshot(`
    "2026-11-21, commit abc1234, Linux 6.18.0, 2 × a CPU, load average 0.5 before and 1.3 after. Times as on the machine of the goals: an empty program × 1.3. The whole of it is in \`bench/results/latest.json\`.

    **Netplane / iptables / nftables, each as a ratio to the plain path by the same hops, without services (latency: less is better; packets a second: more is)**

    | path | request, response | connect, request, response | 64-byte UDP packets a second |
    | --- | ---: | ---: | ---: |
    | \`pod-local\` | 0.93 / 1.08 / – | – / – / – | 1.20 / – / – |
    | \`nodeport-remote.dsr\` (Netplane alone) | 1.02 | – | – |
    | \`pod-remote-vxlan\` (Netplane / the kernel's VXLAN device) | 1.10 / 1.30 | – / – | – / – |

    **A TCP stream in the tunnel, as ratios to plain on the same wire: throughput (more is better), CPU per Gbit (less is)**

    | path | packets as large as they were sent | packets of 1,500 bytes, merged (GRO) | of 9,000 bytes |
    | --- | ---: | ---: | ---: |
    | \`pod-remote-vxlan\` | 0.99, – | 0.91, 1.10 | –, – |

    **What the programs cost a packet, ns (\`.new\`: the first of a flow)**

    | packet | IPv4 | IPv6 | goal |
    | --- | ---: | ---: | ---: |
    | \`pod-pod.est\` | 65 | 72 | ≤ 130 |

    **The agent with services of 10 endpoints each**

    |  | 1,000 services | 10,000 services | goal |
    | --- | ---: | ---: | ---: |
    | start with nothing there, s | 1.9 | – | ≤ 2 / ≤ 2 |
    | restart, s | – | – | ≤ 1.5 / ≤ 1 |
    | map rows written by a restart | – | – | 0 |
    | a changed EndpointSlice to the map, ms (median) | – | – | ≤ 5 |
    | CPU of such a change, ms | – | – | ≤ 2 |
    | CPU while nothing changes: tables read back, hooks looked at, % of a core | – | – | ≤ 1 |
    | resident memory, MB | – | 165 | – / ≤ 200 |
    | BPF maps with all of them, MB | – | – | – |
    | the API source alone until all is in, as Protocol Buffers: CPU beyond its start, s | – | – | – / ≤ 1 |
    | resident memory of it at the most, MB | – | – | – / ≤ 165 |
    | the same by client-node's informers, as JSON: CPU beyond their start, s | – | – | – |
    | resident memory of them at the most, MB | – | – | – |
    | instead with as many pods, and a tenth as many policies: start with nothing there, s | – | – | – / ≤ 5 |
    | a new pod to the map, ms (median) | – | – | – / ≤ 20 |
    | resident memory, MB | – | – | – |
    | resident memory without any, MB | – |  | ≤ 110 |
    | BPF maps of default size without any, MB | – |  | ≤ 140 |
    | flows that are read, 10,000 new ones a second: CPU, % of a core | – |  | ≤ 15 |
    | memory for 100,000 live flows that are read, MB | – |  | ≤ 40 |

    **Lost under load**

    | fault | times | packets lost | connections refused | goal |
    | --- | ---: | ---: | ---: | ---: |
    | agents killed at any moment, started again | 20 | 0 | 0 | 0 |
    | a node of the version before gets this one | 10 | 1 | 0 | 0 |
    "
  `)
})

test('what was not measured has no table', () => {
  expect(pageOf({ ...results, packet: {}, path: {}, control: {}, loss: {} })).not.toContain('|')
})
