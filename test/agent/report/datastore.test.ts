// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { Store } from '#lib/store/store.ts'
import { DATASTORE_READY, DatastoreReport } from '#agent/report/datastore.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { ListLog } from '../../support/fakes/list-log.ts'
import { clusterInformation, model } from '../../support/build.ts'

let folder: string
let file: string
let log: ListLog
let health: Health
let store: Store
let report: DatastoreReport

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-datastore-'))
  file = join(folder, 'ready')
  log = new ListLog()
  const clock = new FakeClock()
  health = new Health(() => clock.wall())
  store = new Store({ sources: ['s'] })
  report = new DatastoreReport({ store, file, clock, health, log })
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function put(datastoreReady?: boolean): void {
  store.sink('s').apply([{ kind: 'upsert', object: model(clusterInformation({ datastoreReady })) }])
}

/** After a look. */
function seen(): readonly unknown[] {
  report.look()
  const { ok, reason } = health.report().conditions.find(({ name }) => name === DATASTORE_READY) ?? {}
  return [existsSync(file), ok, reason, log.events]
}

const LOCKED = 'the datastore is locked: ClusterInformation default has datastoreReady: false'

test.each([true, false])('before anything is read the last word of this pod stands: %s', (was) => {
  if (was) writeFileSync(file, '')
  put(!was)
  expect(seen()).toEqual([was, false, 'starting', []])
  store.sink('s').synced()
  expect(seen().slice(0, 2)).toEqual([!was, !was])
})

test('the file is there while the datastore is open, the condition says why it is not, and readiness waits for neither', () => {
  store.sink('s').synced()
  expect(seen()).toEqual([true, true, '', []])
  put(false)
  expect(seen()).toEqual([false, false, LOCKED, ['datastore.locked']])
  expect(health.report().ready).toBe(true)
  put()
  expect(seen()).toEqual([true, true, '', ['datastore.locked', 'datastore.unlocked']])
})

test('a file that cannot be written is tried again, and said once', () => {
  rmSync(folder, { recursive: true })
  store.sink('s').synced()
  seen()
  expect(seen()).toEqual([false, true, '', ['datastore.mark-failed']])
  mkdirSync(folder)
  expect(seen()[0]).toBe(true)
})
