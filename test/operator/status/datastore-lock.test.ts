// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { underLock } from '#operator/status/datastore-lock.ts'

const ROLLING = { reason: 'RollingOut', message: '2 of 2 pods are of the newest version, 0 are ready; not ready: a, b' }
const CRASH = { reason: 'CrashLoop', message: 'b: netplane-node ends again and again' }
const WAVE = { reason: 'Wave', message: 'phase wave: b; not proven yet: b' }
const LOCKED = { reason: 'DatastoreLocked', message: `locked; ${ROLLING.message}` }

test.each([
  { how: 'an open datastore changes nothing', lock: undefined, state: { unavailable: ROLLING }, says: { unavailable: ROLLING } },
  { how: 'a component that is available stays so', lock: 'locked', state: {}, says: {} },
  {
    ...{ how: 'pods that wait name the lock', lock: 'locked' },
    ...{ state: { unavailable: ROLLING, progressing: ROLLING }, says: { unavailable: LOCKED, progressing: LOCKED } },
  },
  {
    ...{ how: 'the graver cause comes first', lock: 'locked' },
    ...{ state: { unavailable: CRASH, progressing: ROLLING, degraded: CRASH } },
    ...{ says: { unavailable: CRASH, progressing: LOCKED, degraded: CRASH } },
  },
  {
    ...{ how: 'a phase of a switch names the lock', lock: 'locked' },
    ...{ state: { unavailable: WAVE, progressing: WAVE } },
    ...{
      says: {
        unavailable: { ...LOCKED, message: `locked; ${WAVE.message}` },
        progressing: { ...LOCKED, message: `locked; ${WAVE.message}` },
      },
    },
  },
])('$how', ({ lock, state, says }) => {
  expect(underLock(state, lock)).toEqual(says)
})
