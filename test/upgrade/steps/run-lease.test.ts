// SPDX-License-Identifier: Apache-2.0
/** One run at a time: who is refused, what a kill leaves, and what a lost Lease stops. Layer: test. */
import { afterEach, expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { RunLease } from '#upgrade/steps/run-lease.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { FakeLeaseServer, pass } from '../../support/fakes/fake-lease-server.ts'

const clock = new FakeClock()
const { signal } = new AbortController()
const held: RunLease[] = []

afterEach(async () => {
  for (const lease of held.splice(0)) await lease[Symbol.asyncDispose]()
})

/** What becomes of it within this time; undefined: it still waits. */
async function take(server: FakeLeaseServer, identity: string, ms = 0): Promise<Awaited<ReturnType<typeof RunLease.take>> | undefined> {
  let result: Awaited<ReturnType<typeof RunLease.take>> | undefined
  void RunLease.take({ client: server, clock, identity }, signal).then((taken) => {
    result = taken
    if (taken instanceof RunLease) held.push(taken)
  })
  await pass(clock, ms + 1000)
  return result
}

async function taken(server: FakeLeaseServer, identity: string): Promise<RunLease> {
  const lease = await take(server, identity)
  if (!(lease instanceof RunLease)) throw new Error('it was not taken')
  return lease
}

/** As another run writes it. */
async function stolen(server: FakeLeaseServer): Promise<void> {
  await server.update({ ...(server.object as ApiObject), spec: { holderIdentity: 'eve', acquireTime: '2026-11-27T10:00:00.000000Z' } })
}

test('the second is refused by the name of the first and its time; after the first it is free', async () => {
  const server = new FakeLeaseServer()
  const first = await taken(server, 'ada@laptop')
  expect(server.object?.metadata).toMatchObject({ namespace: 'kube-system', name: 'netplane-upgrade' })
  const refusal = await take(server, 'bob@desk', 5000)
  expect(refusal).toMatchObject({
    resource: 'Lease kube-system/netplane-upgrade',
    reason: expect.stringMatching(/^another run is at work: that of ada@laptop, since 1970-01-01T00:1\d:\d\dZ$/) as unknown,
    remedy: expect.stringContaining('15 s after its last word') as unknown,
  })
  await first[Symbol.asyncDispose]()
  expect(await take(server, 'bob@desk')).toBeInstanceOf(RunLease)
})

test('one that was killed holds up the next for the time of the Lease, and no longer', async () => {
  const server = new FakeLeaseServer()
  await server.create({ apiVersion: 'v1', kind: 'Lease', metadata: { name: 'l' }, spec: { holderIdentity: 'dead' } })
  expect(await take(server, 'bob@desk', 12_000)).toBeUndefined()
  await pass(clock, 5000)
  expect(server.spec).toMatchObject({ holderIdentity: 'bob@desk' })
})

test('a step is not begun once another has it, and one that is at work is cut off', async () => {
  const server = new FakeLeaseServer()
  const lease = await taken(server, 'ada@laptop')
  await lease.ensure(signal)
  await stolen(server)
  await pass(clock, 5000)
  expect(lease.lost.aborted).toBe(true)
  await expect(lease.ensure(signal)).rejects.toMatchObject({
    reasons: ['Lease kube-system/netplane-upgrade was lost to another run: that of eve, since 2026-11-27T10:00:00Z'],
  })
})

test('a server that was away loses nothing: the next step waits until the Lease is renewed', async () => {
  const server = new FakeLeaseServer()
  const lease = await taken(server, 'ada@laptop')
  server.isAway = true
  await pass(clock, 20_000)
  let isEnsured = false
  const ensured = lease.ensure(signal).then(() => {
    isEnsured = true
  })
  await pass(clock, 10_000)
  expect([isEnsured, lease.lost.aborted]).toEqual([false, false])
  server.isAway = false
  await pass(clock, 5000)
  await ensured
  expect(isEnsured).toBe(true)
})

test('one that is not renewed for two minutes stops the run, with the reason', async () => {
  const server = new FakeLeaseServer()
  const lease = await taken(server, 'ada@laptop')
  server.isAway = true
  await pass(clock, 12_000)
  const ensured = expect(lease.ensure(signal)).rejects.toThrow('was not renewed: ServiceUnavailable')
  await pass(clock, 125_000)
  await ensured
})
