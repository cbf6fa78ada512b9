// SPDX-License-Identifier: Apache-2.0
/** One pass of the agent: from what changed in the sources to the kernel. Layer: agent. */
import { inSlices } from '#lib/base/async/slices.ts'
import { systemClock } from '#lib/base/clock.ts'
import { selfAddresses } from '../dataplane/host/devices.ts'
import type { ClusterSide } from './cluster-side.ts'
import type { DataplaneSetup } from './dataplane-setup.ts'
import { reportResult, type ResultReports } from './report-result.ts'

export interface PassOptions {
  readonly cluster: ClusterSide
  readonly running: Pick<DataplaneSetup, 'dataplane' | 'monitor'>
  readonly reports: ResultReports
  /** gets the seconds that each took */
  readonly onPass: (seconds: number) => void
}

/** For the apply loop: resolves with the ms after which it is to run again though nothing changed. */
export function passOf({ cluster, running, reports, onPass }: PassOptions): () => Promise<number | undefined> {
  const { desired, store, health } = cluster
  const { dataplane, monitor } = running
  return async () => {
    const start = performance.now()
    // the kernel verifies programs while we compile
    const first = desired.firstConfiguration()
    if (first !== undefined) await dataplane.begin(first)
    {
      // what sources tell meanwhile is for the next pass
      using stack = new DisposableStack()
      stack.use(store.hold())
      const result = await inSlices(
        desired.compile(() => selfAddresses(monitor.interfaces)),
        systemClock,
      )
      if (store.synced) health.pass('sources.synced')
      if (result !== undefined) reportResult(result, reports)
      if (result?.compiled !== undefined) dataplane.setDesired(result.compiled.desired)
    }
    const again = await dataplane.pass()
    onPass((performance.now() - start) / 1000)
    if (dataplane.isWritten) reports.latency.settled()
    return again
  }
}
