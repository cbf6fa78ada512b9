// SPDX-License-Identifier: Apache-2.0
/** What a release takes back, and what it refuses. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { findProblems } from '../../../cli/ipam/problems.ts'
import { mayUseReports, planAddresses, planLeaked, type ReleasePlan } from '../../../cli/ipam/release-plan.ts'
import { leakedInAll, readReport, reportText } from '../../../cli/ipam/report.ts'
import { node, pod, pool } from '../../support/build.ts'
import { addressesOf, block, holder } from './addresses.ts'

const { view } = await addressesOf(
  pool('p', { cidr: '10.1.0.0/16' }),
  node('n1'),
  block('10.1.0.0/26', 'n1', { '10.1.0.1': 'shop/web', '10.1.0.2': 'shop/gone', '10.1.0.3': 'shop/left' }),
  pod('shop/web', { node: 'n1', ips: ['10.1.0.1'] }),
)
const HEAD = { version: 'v1.2.3', time: '2026-01-01T00:00:00Z', clusterGUID: 'g', datastoreLocked: true }
const REPORT = reportText({ ...HEAD, problems: findProblems(view) })

function shown({ release, skipped, refused }: ReleasePlan): unknown {
  return { release: release.map(({ addr }) => formatAddr(addr)), skipped, refused }
}

describe('of addresses', () => {
  const plan = (force: boolean, ...addrs: readonly string[]) => shown(planAddresses(view, addrs.map(parseAddr), force))

  test('one that a pod has, or no block, is refused', () => {
    expect(plan(false, '10.1.0.1', '10.1.0.2', '10.1.0.9')).toEqual({
      release: ['10.1.0.2'],
      skipped: [],
      refused: ['10.1.0.1: pod shop/web has it: use --force', '10.1.0.9: no block has given it away'],
    })
  })

  test('one that a pod has is taken by force', () => {
    expect(plan(true, '10.1.0.1', '10.1.0.1')).toEqual({ release: ['10.1.0.1'], skipped: [], refused: [] })
  })
})

describe('of a report', () => {
  test('leaked ones are taken, as they are written', () => {
    const report = readReport('r.json', REPORT)
    expect(report).toMatchObject({ clusterGUID: 'g', datastoreLocked: true })
    expect(shown(planLeaked(view, report.leaked))).toEqual({ release: ['10.1.0.2', '10.1.0.3'], skipped: [], refused: [] })
  })

  test('what has changed since stays', () => {
    const leaked = [
      { addr: parseAddr('10.1.0.2'), holder: { ...holder('shop/gone'), containerId: 'older' } },
      { addr: parseAddr('10.1.0.1'), holder: holder('shop/web') },
      { addr: parseAddr('10.1.0.9'), holder: holder('shop/gone') },
    ]
    expect(shown(planLeaked(view, leaked))).toEqual({
      release: [],
      skipped: [
        '10.1.0.2 is given back, or to another pod, by now',
        '10.1.0.1 is of pod shop/web by now',
        '10.1.0.9 is given back, or to another pod, by now',
      ],
      refused: [],
    })
  })

  test('of several those that are in all are taken', () => {
    const [one, other] = [readReport('a', REPORT), readReport('b', REPORT)]
    const less = { ...other, leaked: other.leaked.filter(({ addr }) => addr === parseAddr('10.1.0.3')) }
    expect(leakedInAll([one, less]).map(({ addr }) => formatAddr(addr))).toEqual(['10.1.0.3'])
  })

  test.each([
    ['{', 'is not JSON'],
    ['{}', 'is no report of ipam check'],
    ['{"problems": [{"kind": "leaked", "address": "10.1.0.2"}], "datastoreLocked": true}', 'is no leaked address'],
  ])('%s is refused', (text, reason) => {
    expect(() => readReport('r.json', text)).toThrow(reason)
  })

  test.each<{
    readonly title: string
    readonly cluster?: object
    readonly was?: boolean
    readonly force?: boolean
    readonly reason?: string
  }>([
    { title: 'locked then and now', cluster: { clusterGUID: 'g', datastoreReady: false } },
    { title: 'not locked now', cluster: { datastoreReady: true }, reason: 'is not locked' },
    { title: 'without any word of a lock', reason: 'is not locked' },
    { title: 'not locked then', cluster: { datastoreReady: false }, was: false, reason: 'of a time when the datastore was not locked' },
    { title: 'never locked, and forced', cluster: { datastoreReady: true }, was: false, force: true },
    {
      title: 'of another cluster, and forced',
      cluster: { clusterGUID: 'h', datastoreReady: false },
      force: true,
      reason: 'of another cluster',
    },
  ])('is taken or refused for a datastore $title', ({ cluster, was = true, force = false, reason }) => {
    const use = () => {
      mayUseReports([{ ...readReport('r.json', REPORT), datastoreLocked: was }], { cluster, force })
    }
    if (reason === undefined) expect(use).not.toThrow()
    else expect(use).toThrow(reason)
  })
})
