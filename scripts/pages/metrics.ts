// SPDX-License-Identifier: Apache-2.0
/** docs/generated/metrics.md: the agent's metrics, from what it would show Prometheus. Layer: scripts. */
import { agentMetrics } from '#agent/report/metrics.ts'

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
    onPass: () => undefined,
    onSync: () => undefined,
  })
  const text = await metrics.text()
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const rows = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(
    ([, name = '', help = '']) => `| \`${name}\` | ${types.get(name) ?? ''} | ${help} |`,
  )
  return `<!-- Made by scripts/generate-docs.ts from agent/report/metrics.ts: change it there. -->
# Metrics

At \`/metrics\` of the agent's metrics port (off by default; \`prometheusMetricsEnabled\`, or \`--metrics-port\`). Reasons and events are
listed in [drops.md](drops.md).

| metric | type | meaning |
| --- | --- | --- |
${rows.join('\n')}
`
}
