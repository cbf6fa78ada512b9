// SPDX-License-Identifier: Apache-2.0
/** Windows on their way to an aggregator. Layer: test. */
import { expect, test } from 'vitest'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { Outgoing } from '#agent/flows/outgoing.ts'

function updates(from: number, count: number): readonly FlowUpdate[] {
  const key = { source: { type: 'Network', namespace: '-', name: 'pub' } } as unknown as FlowUpdate['window']['key']
  const window = { key, start: 0 } as FlowUpdate['window']
  return Array.from({ length: count }, (_, index) => ({ node: 'n1', sequence: from + index, window }))
}

/** What comes until it has to wait. */
async function now(messages: AsyncGenerator<FlowUpdate>): Promise<readonly number[]> {
  const came: number[] = []
  for (;;) {
    const next = await Promise.race([messages.next(), new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 20))])
    if (next === undefined || next.done === true) return came
    came.push(next.value.sequence)
  }
}

test('so many are on the wire, and another one for each receipt', async () => {
  const [outgoing, stop] = [new Outgoing(1000), new AbortController()]
  outgoing.add(updates(0, 300))
  const messages = outgoing.messages(stop.signal)
  expect(await now(messages)).toHaveLength(256)
  outgoing.acknowledge()
  outgoing.acknowledge()
  expect(await now(messages)).toEqual([257])
  stop.abort()
})

test('of more than there is room for the oldest go, and are counted', async () => {
  const [outgoing, stop] = [new Outgoing(3), new AbortController()]
  expect([outgoing.add(updates(0, 2)), outgoing.add(updates(2, 3))]).toEqual([0, 2])
  expect(await now(outgoing.messages(stop.signal))).toEqual([2, 3, 4])
  stop.abort()
})
