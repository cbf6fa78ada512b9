// SPDX-License-Identifier: Apache-2.0
/** The Lease by which one of several processes acts. Layer: test. */
import { afterEach, expect, test } from 'vitest'
import { UnreachableError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { silentLog } from '#lib/obs/log.ts'
import { Lease } from '#lib/control/lease.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { FakeLeaseServer, pass } from '../../support/fakes/fake-lease-server.ts'

const clock = new FakeClock()
const running: { readonly stop: AbortController; readonly ended: Promise<void> }[] = []

afterEach(async () => {
  for (const { stop } of running) stop.abort()
  await Promise.all(running.splice(0).map(({ ended }) => ended))
})

function start(server: FakeLeaseServer, identity: string): { readonly lease: Lease; readonly stop: () => Promise<void> } {
  const lease = new Lease({ client: server, clock, log: silentLog, namespace: 'n', name: 'l', identity })
  const stop = new AbortController()
  const ended = lease.run(stop.signal, () => undefined)
  running.push({ stop, ended })
  return {
    lease,
    stop: async () => {
      stop.abort()
      await ended
    },
  }
}

test('the first takes it, the second waits, however long the first renews it', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  const second = start(server, 'b')
  await pass(clock, 60_000)
  expect([first.lease.isHeld, second.lease.isHeld]).toEqual([true, false])
  expect(server.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 })
})

test('one that is given back is taken at the next look, and counts who had it', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  const { acquireTime } = server.spec
  const second = start(server, 'b')
  await pass(clock, 1000)
  await first.stop()
  expect(server.spec).toMatchObject({ holderIdentity: '', acquireTime, leaseTransitions: 0 })
  await pass(clock, 5000)
  expect(second.lease.isHeld).toBe(true)
  expect(server.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  expect(server.spec['acquireTime']).not.toBe(acquireTime)
})

test('a holder that cannot renew it stops acting before another may', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  server.isAway = true
  await pass(clock, 8000)
  expect(first.lease.isHeld).toBe(true)
  await pass(clock, 2000)
  expect(first.lease.isHeld).toBe(false)
})

test('one whose holder has ended without a word is taken after its time, by the watcher’s own clock', async () => {
  const server = new FakeLeaseServer()
  await server.create({
    apiVersion: 'v1',
    kind: 'Lease',
    metadata: { name: 'l' },
    spec: { holderIdentity: 'dead', renewTime: '2999-01-01T00:00:00Z' },
  })
  const second = start(server, 'b')
  await pass(clock, 14_000)
  expect(second.lease.isHeld).toBe(false)
  await pass(clock, 5000)
  expect(second.lease.isHeld).toBe(true)
})

test('one that another has taken meanwhile is not given back in its name', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  await server.update({ ...(server.object as ApiObject), spec: { holderIdentity: 'b' } })
  await first.stop()
  expect(server.spec).toEqual({ holderIdentity: 'b' })
})

test('a holder reads nothing to renew it, and goes on where another has only written something into it', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 60_000)
  expect(server.reads).toBe(1)
  const renewed = server.spec['renewTime']
  const object = server.object as ApiObject
  await server.update({ ...object, metadata: { ...object.metadata, labels: { by: 'hand' } } })
  await pass(clock, 5000)
  expect([first.lease.isHeld, server.reads]).toEqual([true, 2])
  expect(server.spec['renewTime']).not.toBe(renewed)
})

test('a holder whose Lease another has taken stops at its next look', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  await server.update({ ...(server.object as ApiObject), spec: { holderIdentity: 'b' } })
  await pass(clock, 4000)
  expect(first.lease.isHeld).toBe(false)
  expect(server.spec).toMatchObject({ holderIdentity: 'b' })
})

test('for how long no answer came is told, and a refusal is an answer', async () => {
  const told: number[] = []
  const failing = new FakeLeaseServer()
  let isThere = true
  const answering = <T>(answer: () => Promise<T>): Promise<T> => (isThere ? answer() : Promise.reject(new UnreachableError('away')))
  const lease = new Lease({
    client: {
      get: () => answering(() => failing.get()),
      create: (object) => answering(() => failing.create(object)),
      update: (object) => answering(() => failing.update(object)),
    },
    ...{ clock, log: silentLog, namespace: 'n', name: 'l', identity: 'a' },
    onSilent: (ms) => (ms < 20_000 ? Promise.resolve(void told.push(ms)) : Promise.reject(new Error('too long'))),
  })
  const stop = new AbortController()
  const ended = lease.run(stop.signal, () => undefined)
  const failed = ended.catch((thrown: unknown) => String(thrown))
  await pass(clock, 9000)
  failing.isAway = true
  await pass(clock, 20_000)
  expect(told).toEqual([])
  isThere = false
  await pass(clock, 40_000)
  expect(told).toEqual([4000, 8000, 12_000, 16_000])
  expect(await failed).toBe('Error: too long')
})

test('one that waits says who has it, and whether that one still renews it', async () => {
  const server = new FakeLeaseServer()
  const first = start(server, 'a')
  await pass(clock, 1000)
  const second = start(server, 'b')
  await pass(clock, 500)
  expect(second.lease.other).toEqual({ identity: 'a', since: server.spec['acquireTime'], isAlive: false })
  await pass(clock, 8000)
  expect(second.lease.other).toMatchObject({ identity: 'a', isAlive: true })
  expect(first.lease.other).toBeUndefined()
  await first.stop()
  await pass(clock, 5000)
  expect(second.lease.other).toBeUndefined()
})
