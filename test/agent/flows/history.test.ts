// SPDX-License-Identifier: Apache-2.0
/** Windows that readers may ask for again. Layer: test. */
import { expect, test } from 'vitest'
import type { FlowKey, FlowWindow } from '#lib/flows/flow.ts'
import { History } from '#agent/flows/history.ts'

const KEY: FlowKey = {
  source: { type: 'Network', namespace: '-', name: 'pub' },
  dest: { type: 'Network', namespace: '-', name: 'pvt' },
  ...{ destPort: 80, service: undefined, protocol: 'tcp', reporter: 'Dst', action: 'Allow', reason: '', enforced: [], pending: [] },
}
const END = { labels: [], addresses: [], pods: [], node: '', owner: '' }

function window(port: number, start: number, live = 1): FlowWindow {
  const counts = { packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0, started: 0, completed: 0, live }
  return { key: { ...KEY, destPort: port }, start, counts, source: END, dest: END, sourcePorts: [] }
}

function known(history: History, since = 0): readonly string[] {
  return [...history.since(since)].map(
    ({ sequence, window: { key, start, counts } }) => `${sequence}: ${key.destPort} ${start} ${counts.live}`,
  )
}

test('a window that is told again takes the place of what was told of it', () => {
  const history = new History({ node: 'n1', first: 7 })
  history.add([window(80, 0), window(81, 0)])
  history.add([window(80, 0, 2), window(80, 15)])
  expect(known(history)).toEqual(['8: 81 0 1', '9: 80 0 2', '10: 80 15 1'])
  expect(known(history, 10)).toEqual(['10: 80 15 1'])
})

test('the oldest make room', () => {
  const history = new History({ node: 'n1', first: 0, most: 2 })
  history.add([window(80, 0), window(81, 0), window(82, 0)])
  expect(known(history)).toEqual(['1: 81 0 1', '2: 82 0 1'])
})

test('the next agent goes on with higher numbers', () => {
  const before = new History({ node: 'n1', first: 100 })
  before.add([window(80, 0)])
  const history = new History({ node: 'n1', first: 50 })
  history.restore(JSON.parse(JSON.stringify([...before.since(0)])) as ReturnType<History['add']>)
  history.add([window(80, 0, 2)])
  expect(known(history)).toEqual(['101: 80 0 2'])
})
