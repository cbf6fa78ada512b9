// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { objectChange } from '#lib/model/snapshot.ts'
import { SyncLatency } from '#agent/report/sync-latency.ts'

function slice(triggered: number | undefined): EndpointSlice {
  const common = { kind: 'EndpointSlice', namespace: 'default', name: 'web-1', service: 'web', addressType: 'IPv4' } as const
  return { ...common, ports: [], endpoints: [], ...(triggered === undefined ? {} : { triggered }) }
}

test('sync latency counts from what changed the endpoints until the change is in the kernel, each once', () => {
  const seconds: number[] = []
  const time = { now: 100_000 }
  const latency = new SyncLatency({ wall: () => time.now, observe: (one) => seconds.push(one) })
  const change = (before: EndpointSlice | undefined, after: EndpointSlice | undefined): void => {
    const found = objectChange(before, after)
    latency.note(found === undefined ? [] : [found])
  }
  change(undefined, slice(99_000))
  change(slice(99_000), slice(99_500))
  time.now = 101_000
  latency.settled()
  expect(seconds).toEqual([2, 1.5])
  change(slice(99_500), slice(99_500))
  change(slice(99_500), slice(undefined))
  change(slice(undefined), undefined)
  latency.settled()
  expect(seconds).toHaveLength(2)
  change(undefined, slice(time.now + 50))
  latency.settled()
  expect(seconds).toEqual([2, 1.5, 0])
})
