// SPDX-License-Identifier: Apache-2.0
/** One form of the soak, as a process of its own: FORM MINUTES SEED FOLDER. The last line counts. Layer: soak. */
import { tell, type SoakRun } from './scenario.ts'
import { History } from './history.ts'
import { manifestsScenario } from './manifests-scenario.ts'
import { podsScenario } from './pods/scenario.ts'
import type { PodStep } from './pods/steps.ts'
import type { Step } from './changes/steps.ts'

const [form = '', minutes = '', seed = '', kept = ''] = process.argv.slice(2)
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

const about = { name: `soak${process.pid}`, minutes: Number(minutes), seed: Number(seed), kept, say, signal: stop.signal }

async function manifests(): ReturnType<typeof tell> {
  const run: SoakRun<Step> = { ...about, history: new History<Step>() }
  return await tell(manifestsScenario(run), run)
}

async function pods(): ReturnType<typeof tell> {
  const run: SoakRun<PodStep> = { ...about, history: new History<PodStep>() }
  return await tell(podsScenario(run), run)
}

say(`soak of ${form}: seed ${seed}, ${minutes} minutes`)
const { passed, failed } = await (form === 'pods' ? pods() : manifests())
say(`soak of ${form}: ${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
