// SPDX-License-Identifier: Apache-2.0
/** Reads agents' metrics pages. Layer: demo (pure). */

/** 'netplane_packets_total{event="connect"}' → value. Help lines are left out. */
export function parseMetrics(page: string): Map<string, number> {
  const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}

/** The sum over all labels. */
export function total(metrics: ReadonlyMap<string, number>, name: string): number {
  return [...metrics].filter(([key]) => key === name || key.startsWith(`${name}{`)).reduce((sum, [, value]) => sum + value, 0)
}

/** "tunnel_sent +4": what grew from one page to the next, of the samples with this name; label values only. */
export function growth(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>, name: string): string[] {
  return [...after].flatMap(([key, value]) => {
    const by = value - (before.get(key) ?? 0)
    return key.startsWith(`${name}{`) && by !== 0 ? [`${/="(.*)"}$/.exec(key)?.[1] ?? key} +${by}`] : []
  })
}
