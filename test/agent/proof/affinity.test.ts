// SPDX-License-Identifier: Apache-2.0
/** When a service is found to lead a client away from its endpoint. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { keepsEndpoint } from '#agent/proof/affinity.ts'
import type { Ask, Place } from '#agent/proof/asks.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const RUNNING = new AbortController().signal

function place(name: string): Place {
  return { addr: parseAddr(`10.0.0.${name.charCodeAt(0)}`), port: 80 }
}

interface Story {
  /** to which endpoint each question goes, the last one for all that follow; "-": the flow table does not say */
  readonly leads: string
  /** endpoints of the service then */
  readonly has?: string
  /** ms that each question takes */
  readonly takes?: number
  readonly affinitySeconds?: number
}

/** Whether the endpoint was kept, and how often it was asked. */
async function kept({ leads, has = 'ab', takes = 1, affinitySeconds = 10 }: Story): Promise<[boolean, number]> {
  const clock = new FakeClock()
  let asked = 0
  const ask: Ask = {
    ...{ ...place('s'), service: 'shop/db', how: 'connect', isNodePort: false },
    ...{ affinitySeconds, endpoints: [] },
  }
  const client = {
    ...{ isPod: true, isRuled: false },
    ask: () => {
      clock.advance(takes)
      const to = leads[Math.min(asked++, leads.length - 1)] ?? '-'
      return Promise.resolve({ endpoint: to === '-' ? undefined : place(to) })
    },
  }
  const isKept = await keepsEndpoint(ask, { clock, client, endpointsOf: () => Array.from(has, place), signal: RUNNING })
  return [isKept, asked]
}

test('a client that is led to the same endpoint each time is asked for eight times', async () => {
  expect(await kept({ leads: 'a' })).toEqual([true, 8])
})

test('a client that is led from an endpoint to another again and again is not kept', async () => {
  expect(await kept({ leads: 'abababab' })).toEqual([false, 4])
})

test('an endpoint that the service has no more may lead its clients away', async () => {
  expect(await kept({ leads: 'aabbb', has: 'bc' })).toEqual([true, 8])
})

test('an endpoint that went for a moment leads its clients away once', async () => {
  expect(await kept({ leads: 'ab' })).toEqual([true, 10])
})

test('a client whose time is over may be led elsewhere', async () => {
  expect((await kept({ leads: 'abababababababab', takes: 600, affinitySeconds: 1 }))[0]).toBe(true)
  expect((await kept({ leads: 'abababababababab', takes: 400, affinitySeconds: 1 }))[0]).toBe(false)
})

test('what the flow table does not say is held against no service, nor hides what it says of others', async () => {
  expect((await kept({ leads: '-' }))[0]).toBe(true)
  expect((await kept({ leads: 'a-b-a-b-a-b' }))[0]).toBe(false)
})

test('a service of one endpoint is not asked', async () => {
  expect(await kept({ leads: 'a', has: 'a' })).toEqual([true, 0])
})
