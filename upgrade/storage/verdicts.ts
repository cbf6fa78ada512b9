// SPDX-License-Identifier: Apache-2.0
/** `verdicts`: what is imported judges, and gives addresses, as what is stored does. Layer: upgrade. */
import { listOrNone } from '#lib/api/absent.ts'
import { WATCHED } from '#lib/api/watch/watch-list.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import type { Step } from '../steps/step.ts'
import { API_VERSION } from '../stored/outcome.ts'
import { aggregatedService } from './api-service.ts'
import { isImported } from './cluster-information.ts'
import { importState, readHeld, readInput } from './import-state.ts'
import { StepFailedError, type StorageOptions } from './options.ts'
import { verdictReportOf, type VerdictReport } from './verdicts/report.ts'

const STEP = 'verdicts'
const AT_ONCE = 4
/** Services themselves judge nothing; pods and nodes are read with what is stored. */
const NOT_ASKED: ReadonlySet<string> = new Set(['Service', 'Pod', 'Node'])
const JUDGING = WATCHED.filter(({ entry, apiVersion }) => apiVersion !== API_VERSION && !NOT_ASKED.has(entry.kind))

/** Nothing is switched to this version before it is done. */
export function verdictsStep(options: StorageOptions): Step {
  const { client } = options
  return {
    name: STEP,
    about: 'compares the verdicts on all pairs of endpoints, pools, and addresses of pods with those of what is stored',
    commands: [],
    look: async (signal) => {
      if (await isImported(client, signal)) return { isDone: true, problems: [] }
      if ((await aggregatedService(client, { signal })) !== undefined) return { isDone: false, problems: [] }
      // what is not there yet is no difference
      if ((await importState(options, signal)).writes.length > 0) return { isDone: false, problems: [] }
      const report = await verdictReport(options, signal)
      const { differences } = report
      return { isDone: differences.length === 0, problems: differences, ...(differences.length === 0 && { found: sameText(report) }) }
    },
    run: async (signal) => {
      const { differences } = await verdictReport(options, signal)
      if (differences.length > 0) throw new StepFailedError(STEP, differences)
    },
  }
}

function sameText({ classes, pairs }: VerdictReport): string {
  return `verdicts on ${pairs} pairs of ${classes} classes of endpoints, and addresses, are as they were`
}

/** Of what the server has now. */
export async function verdictReport(options: StorageOptions, signal: AbortSignal): Promise<VerdictReport> {
  const input = await readInput(options, signal)
  const held = await readHeld(options, signal)
  const list = ({ apiVersion, kind }: (typeof JUDGING)[number]) => listOrNone(options.client, { apiVersion, kind }, { signal })
  const cluster = (await mapLimited(JUDGING, AT_ONCE, list)).flat()
  return verdictReportOf(input, { held, cluster })
}
