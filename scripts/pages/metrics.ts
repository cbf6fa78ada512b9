// SPDX-License-Identifier: Apache-2.0
/** docs/generated/metrics.md: what our programs would show Prometheus. Layer: scripts. */
import { agentMetrics } from '#agent/report/metrics.ts'
import type { Metrics } from '#lib/obs/metrics.ts'
import { controllersMetrics } from '#controllers/run/metrics.ts'
import { noCounts } from '#flows/aggregator.ts'
import { flowsMetrics } from '#flows/run/metrics.ts'
import { operatorMetrics } from '#operator/run/metrics.ts'

export async function metricsPage(): Promise<string> {
  const metrics = agentMetrics({
    node: '',
    version: '',
    store: { synced: false },
    book: { list: () => [] },
    settings: { counts: () => new Map(), waiting: 0 },
    showsProcess: () => true,
    policies: { counts: () => new Map() },
    policySize: () => undefined,
    running: undefined,
    flows: undefined,
    onPass: () => undefined,
    onSync: () => undefined,
  })
  const operator = operatorMetrics({
    version: '',
    isLeader: () => false,
    statuses: () => [],
    writes: () => new Map(),
    onPass: () => undefined,
  })
  const controllers = controllersMetrics({
    version: '',
    isLeader: () => false,
    hostEndpointWrites: () => 0,
    blocksCollected: () => 0,
    onPass: () => undefined,
  })
  const none = (): number => 0
  const flows = flowsMetrics({
    count: noCounts(),
    nodes: () => new Map(),
    collectors: none,
    followers: none,
    keys: none,
    openRows: none,
    kept: () => undefined,
    forgotten: none,
  })
  return `<!-- Made by scripts/generate-docs.ts from agent/report/metrics.ts, operator/run/metrics.ts, controllers/run/metrics.ts and flows/run/metrics.ts: change it there. -->
# Metrics

## The agent's

At \`/metrics\` of the agent's metrics port (off by default; \`prometheusMetricsEnabled\`, or \`--metrics-port\`). Reasons and events are
listed in [drops.md](drops.md).

${await table(metrics)}
## The operator's

At \`/metrics\` of its metrics port (off by default; \`--metrics-port\`).

${await table(operator)}
## The controllers'

At \`/metrics\` of their metrics port (off by default; \`--metrics-port\`).

${await table(controllers)}
## The aggregator's

At \`/metrics\` of the metrics port of [netplane-flows](../flows.md) (off by default; \`--metrics-port\`).

${await table(flows)}`
}

async function table(metrics: Metrics): Promise<string> {
  const text = await metrics.text()
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const rows = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(
    ([, name = '', help = '']) => `| \`${name}\` | ${types.get(name) ?? ''} | ${help} |`,
  )
  return `| metric | type | meaning |
| --- | --- | --- |
${rows.join('\n')}
`
}
