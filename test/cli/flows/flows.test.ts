// SPDX-License-Identifier: Apache-2.0
/** netplanectl flows: its arguments, filters and lines. Layer: test. */
import { expect, test } from 'vitest'
import { ConfigError } from '#lib/base/errors.ts'
import type { EndDetails, FlowKey, FlowUpdate } from '#lib/flows/flow.ts'
import { readArgs } from '../../../cli/args.ts'
import type { FlowsOrder } from '../../../cli/flows/order.ts'
import { cells, compactText } from '../../../cli/flows/text.ts'

const NOWHERE: EndDetails = { labels: [], addresses: [], pods: [], node: '', owner: '' }
const KEY: FlowKey = {
  source: { type: 'WorkloadEndpoint', namespace: 'shop', name: 'web-6d4b-*' },
  dest: { type: 'WorkloadEndpoint', namespace: 'data', name: 'db-0' },
  destPort: 5432,
  service: { namespace: 'data', name: 'db', portName: 'sql', port: 432 },
  protocol: 'tcp',
  reporter: 'Dst',
  action: 'Allow',
  reason: '',
  enforced: [{ kind: 'NetworkPolicy', tier: 'default', namespace: 'data', name: 'db', action: 'Allow', rule: 0 }],
  pending: [],
}

function update(key: Partial<FlowKey> = {}): FlowUpdate {
  const counts = { packetsIn: 3, packetsOut: 2, bytesIn: 180, bytesOut: 2000, started: 1, completed: 0, live: 2 }
  return {
    node: 'n1',
    sequence: 1,
    window: {
      ...{ key: { ...KEY, ...key }, start: 1_800_000_000, counts, sourcePorts: [40_000] },
      source: { labels: ['app=web', 'tier='], addresses: ['10.1.0.1'], pods: ['web-6d4b-x'], node: 'n2', owner: 'Deployment/web' },
      dest: { ...NOWHERE, labels: ['app=db'], addresses: ['fd00::3'] },
    },
  }
}

const DENIED = update({
  action: 'Deny',
  enforced: [
    {
      ...{ kind: 'EndOfTier', tier: 'default', namespace: '', name: '', action: 'Deny', rule: -1 },
      trigger: { kind: 'NetworkPolicy', tier: 'default', namespace: 'data', name: 'db' },
    },
  ],
})
const DROPPED = update({ action: 'Deny', reason: 'no_route', enforced: [], service: undefined })

function order(line: string): FlowsOrder {
  const read = readArgs(['flows', '--node', ...line.split(' ').filter((word) => word !== '')])
  if (read.kind !== 'flows') throw new Error(`${line} is ${read.kind}`)
  return read
}

test.each([
  ['', true],
  ['--namespace shop', true],
  ['-n shop', true],
  ['--namespace nowhere', false],
  ['--namespace nowhere --namespace data', true],
  ['--namespace shop --port 80', false],
  ['--from-namespace data', false],
  ['--to-namespace data', true],
  ['--not --namespace shop', false],
  ['--not --namespace nowhere --port 5432', true],
  ['--not --port 80 --not --port 5432', false],
  ['--pod web', true],
  ['--from-pod shop/web-6d4b-x', true],
  ['--from-pod data/web', false],
  ['--to-pod db-0', true],
  ['--label app=web', true],
  ['--to-label app=web', false],
  ['--label tier=', true],
  ['-l app=web', true],
  ["--label app=='db'", true],
  ['--from-label has(app)', true],
  ['--to-label !has(app)', false],
  ['--ip 10.1.0.0/16', true],
  ['--ip fd00::3', true],
  ['--from-ip fd00::3', false],
  ['--port 5000-6000', true],
  ['--from-port 40000', true],
  ['--to-port 40000', false],
  ['--workload web', true],
  ['--workload Deployment/web', true],
  ['--workload DaemonSet/web', false],
  ['--to-workload web', false],
  ['--service db', true],
  ['--service data/db', true],
  ['--service shop/db', false],
  ['--node-name n1', true],
  ['--node-name n2', false],
  ['--protocol TCP', true],
  ['--protocol udp', false],
  ['--verdict allowed', true],
  ['--verdict denied', false],
  ['--policy data/db', true],
  ['--policy other', false],
])('of an allowed flow the filter "%s" says %s', (line, wanted) => {
  expect(order(line).filter(update())).toBe(wanted)
})

test('what a rule has denied is told from what was dropped, and a policy is found that denies by the end of its tier', () => {
  const says = (line: string): readonly boolean[] => [DENIED, DROPPED].map((one) => order(line).filter(one))
  expect(says('--verdict denied')).toEqual([true, false])
  expect(says('--verdict dropped')).toEqual([false, true])
  expect(says('--drop-reason no_route')).toEqual([false, true])
  expect(says('--policy data/db')).toEqual([true, false])
})

test.each([
  ['--ip 10.1', '--ip: "10.1" is neither an address nor a prefix'],
  ['--port 70000', '--port: "70000" is neither a port nor a range of them'],
  ['--label a==', '--label: '],
  ['--protocol tcpp', '--protocol: "tcpp" is no protocol'],
  ['--verdict maybe', '--verdict: "maybe" is none: allowed, denied, dropped'],
  ['--not', '--not: has no filter behind it'],
  ['--not --follow', '--not: negates no --follow'],
  ['--last 0', '--last: "0" is no number of flows'],
  ['--last 5 --all', '--all: is another than --last'],
  ['--since yesterday', '--since: "yesterday" is neither a duration (4m) nor a time (RFC 3339)'],
  ['--output yaml', '--output: "yaml" is none: table, compact, json'],
  ['extra', 'flows: "extra" is too much'],
])('%s is refused, and the flag is named', (line, reason) => {
  expect(() => order(line)).toThrow(ConfigError)
  expect(() => order(line)).toThrow(reason)
})

test('times are so long ago, or as they are written', () => {
  const { since = 0 } = order('--since 4m')
  const ago = Date.now() - since
  expect(ago).toBeGreaterThanOrEqual(240_000)
  expect(ago).toBeLessThan(250_000)
  expect(order('--until 2026-11-28T10:00:00Z').until).toBe(Date.UTC(2026, 10, 28, 10))
  expect([order('').take, order('--first 3').take, order('--all').take]).toEqual([
    { from: 'last', count: 20 },
    { from: 'first', count: 3 },
    undefined,
  ])
})

test('a line says who, what was meant, how much and which rule; without what there is not', () => {
  const [, ...rest] = cells(update())
  expect(rest).toEqual([
    'allowed at destination',
    'shop/web-6d4b-*',
    'data/db-0:5432',
    'tcp',
    'data/db:432',
    '1/2',
    '3/2',
    '180/2000',
    'NetworkPolicy data/db rule 0',
  ])
  expect(cells(DROPPED).slice(1, 6)).toEqual(['dropped at destination: no_route', 'shop/web-6d4b-*', 'data/db-0:5432', 'tcp', '-'])
  expect(compactText(DENIED)).toMatch(
    /^\d\d:\d\d:\d\d shop\/web-6d4b-\* > data\/db-0:5432 tcp denied at destination by end of tier default \(NetworkPolicy data\/db\)$/,
  )
})
