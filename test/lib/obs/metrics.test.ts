// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { Metrics, type Sample } from '#lib/obs/metrics.ts'

/** Without comments and blank lines. */
async function samples(metrics: Metrics): Promise<string[]> {
  return (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

describe('metrics', () => {
  test('are read when they are asked for, and what is gone is not shown', async () => {
    const metrics = new Metrics()
    let now: Sample[] = [{ labels: { reason: 'ttl' }, value: 3 }]
    metrics.counter({ name: 'drops_total', help: 'Drops.', labels: ['reason'] }, () => now)
    metrics.gauge({ name: 'rows', help: 'Rows.', labels: ['reason'] }, () => now)
    metrics.gauge({ name: 'since', help: 'Time.', labels: [] }, () => [])
    metrics.counter({ name: 'cpu_total', help: 'Time.', labels: [] }, () => [])
    expect(await samples(metrics)).toEqual(['drops_total{reason="ttl"} 3', 'rows{reason="ttl"} 3'])
    now = [{ labels: { reason: 'short' }, value: 1 }]
    expect(await samples(metrics)).toEqual(['drops_total{reason="short"} 1', 'rows{reason="short"} 1'])
  })

  test('a histogram counts what it observes', async () => {
    const metrics = new Metrics()
    const observe = metrics.histogram({ name: 'seconds', help: 'Time.' }, [0.1, 1])
    observe(0.05)
    observe(0.5)
    expect(await samples(metrics)).toEqual([
      'seconds_bucket{le="0.1"} 1',
      'seconds_bucket{le="1"} 2',
      'seconds_bucket{le="+Inf"} 2',
      'seconds_sum 0.55',
      'seconds_count 2',
    ])
  })

  test('says what kind of page it is', () => {
    expect(new Metrics().contentType).toMatch(/^text\/plain/)
  })
})
