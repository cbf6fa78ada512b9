// SPDX-License-Identifier: Apache-2.0
/** Kinds of tests: unit (anyone), kernel and api (root, own network and mount namespace), lab (root), e2e (root, a
 * real cluster). Layer: test. */
import { defineConfig } from 'vitest/config'
import { isLong } from './test/cluster/length.ts'
import { Sequencer } from './test/support/steady/sequencer.ts'
import { HANG_MS } from './testkit/base/hang.ts'

/** a failed comparison of texts is told whole: of a run elsewhere it is all there is */
const chaiConfig = { truncateThreshold: 0 }
const resolve = { conditions: ['source'] }
const ssr = { resolve: { conditions: ['source'] } }
/** a run draws what the one before drew */
const setupFiles = ['test/support/steady/seed.ts']
/** what a test waits for comes at once, or on a busy machine later: only what hangs is given up */
const patience = { poll: { timeout: HANG_MS } }
/** the same where a look is a process in another namespace, or kubectl: at the usual pace they keep a processor busy */
const patienceOfProcesses = { poll: { timeout: HANG_MS, interval: 250 } }

export default defineConfig({
  test: {
    sequence: { sequencer: Sequencer },
    projects: [
      {
        resolve,
        ssr,
        test: {
          chaiConfig,
          name: 'unit',
          setupFiles,
          include: ['test/**/*.test.ts'],
          exclude: ['test/native/**', 'test/kernel/**', 'test/apiserver/**', 'test/lab/**', 'test/cluster/**'],
          // files keep nothing in modules: a fresh worker for each would cost as much as a third of the tests
          isolate: false,
          // some wait for their own timers most of the time
          maxWorkers: 3,
          // longer than a wait, which says what did not come; thousands of random cases take a second of an idle CPU
          testTimeout: 2 * HANG_MS,
          hookTimeout: 2 * HANG_MS,
          expect: patience,
        },
      },
      {
        resolve,
        ssr,
        test: {
          chaiConfig,
          name: 'kernel',
          setupFiles,
          include: ['test/native/**/*.test.ts', 'test/kernel/**/*.test.ts'],
          globalSetup: 'test/kernel/own-namespace.ts',
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: patience,
        },
      },
      {
        resolve,
        ssr,
        test: {
          chaiConfig,
          name: 'api',
          setupFiles,
          include: ['test/apiserver/**/*.test.ts'],
          globalSetup: 'test/kernel/own-namespace.ts',
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: patience,
        },
      },
      {
        resolve,
        ssr,
        test: {
          chaiConfig,
          name: 'lab',
          setupFiles,
          include: ['test/lab/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect: patienceOfProcesses,
        },
      },
      {
        resolve,
        ssr,
        test: {
          chaiConfig,
          name: 'e2e',
          setupFiles,
          include: ['test/cluster/{,operator/}*.test.ts', ...(isLong ? ['test/cluster/long/*.test.ts'] : [])],
          globalSetup: 'test/cluster/setup.ts',
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect: patienceOfProcesses,
        },
      },
    ],
  },
})
