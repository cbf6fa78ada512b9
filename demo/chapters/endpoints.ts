// SPDX-License-Identifier: Apache-2.0
/** The endpoint changes under traffic: new connections go to the new pod, established ones stay where they are, none
 * is lost. Layer: demo. */
import { systemClock } from '#lib/base/clock.ts'
import { LabError } from '../../lab/errors.ts'
import { longer } from '../../lab/slowness.ts'
import { request, startFlow, startRequests } from '../../lab/traffic/traffic.ts'
import type { StreamResult } from '../../lab/tools/results.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Piece } from '../report.ts'
import type { Stage } from '../stage.ts'
import { failureText } from './answers.ts'
import { FLOW_HEAD, flowRows, isWhole } from './flows.ts'

const NEW = 'web-2'
/** until new connections reach a service's new pod */
const FOUND_MS = 5000

export async function* endpoints(stage: Stage): AsyncGenerator<Piece> {
  const { lab } = stage
  const to = ([4, 6] as const).flatMap((family) => [stage.nodePort('node-a', 'tcp', family), stage.nodePort('node-a', 'udp', family)])
  const flow = await startFlow(lab, { from: 'client', to })
  const requests = startRequests(lab, { from: 'far', to: stage.nodePort('node-a', 'tcp', 4), count: 0, rate: 200 })
  await requests.event('started', 10_000)
  await pause(500)
  const start = systemClock.wall()
  stage.moveService(NEW)
  const moved = await waitForPod(stage, NEW)
  await pause(1000)
  const shorts = await requests.stop()
  const result = await flow.stop()
  const failures = failureText(shorts)
  const first = shorts.since[NEW]
  const both = (shorts.pods['web-1'] ?? 0) > 0 && (shorts.pods[NEW] ?? 0) > 0
  yield {
    kind: 'table',
    head: ['WHAT', 'SEEN'],
    rows: [
      {
        cells: [
          `a new connection reaches ${NEW}`,
          first === undefined ? `not within ${longer(FOUND_MS) / 1000} s` : `${first - start} ms after the manifest was replaced`,
        ],
        ok: moved && first !== undefined,
      },
      { cells: [`${shorts.ok} new connections meanwhile`, `${podsText(shorts.pods)}; ${failures}`], ok: both && failures === 'no failure' },
    ],
  }
  yield { kind: 'table', head: FLOW_HEAD, rows: flowRows(result, { run: 'established', from: 'client' }, isUndisturbed) }
  stage.moveService('web-1')
  if (!(await waitForPod(stage, 'web-1'))) throw new LabError('service web', 'does not go back to web-1')
}

/** A connection stays with the pod that began it; of datagrams the demo only promises that none is lost. */
function isUndisturbed(stream: StreamResult): boolean {
  return isWhole(stream) && (stream.stream.startsWith('udp') || stream.pods['web-1'] === stream.received)
}

/** Asks in both families until each is answered by this pod. */
async function waitForPod(stage: Stage, pod: string): Promise<boolean> {
  for (const family of [4, 6] as const) {
    const ask = async (): Promise<true | undefined> => {
      const result = await request(stage.lab, { from: 'far', to: stage.nodePort('node-a', 'tcp', family) })
      return result.answers[0]?.pod === pod ? true : undefined
    }
    if ((await waitFor(ask, { timeoutMs: FOUND_MS })) === undefined) return false
  }
  return true
}

function podsText(pods: Readonly<Record<string, number>>): string {
  return Object.entries(pods)
    .map(([pod, count]) => `${pod} ${count}`)
    .join(', ')
}

async function pause(ms: number): Promise<void> {
  await systemClock.sleep(longer(ms), new AbortController().signal)
}
