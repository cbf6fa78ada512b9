// SPDX-License-Identifier: Apache-2.0
/** Results of requests as cells of a table. Layer: demo. */
import type { RequestsResult } from '../../lab/tools/results.ts'
import type { Stage } from '../stage.ts'

/** The address that the pod took for the client's; undefined when none answered. */
export function saw(result: RequestsResult): string | undefined {
  const peer = result.answers[0]?.peer
  return peer === undefined ? undefined : peer.replace(/^\[?(.*?)\]?:\d+$/, '$1')
}

/** The pod that answered, and the client it saw; or what happened instead. */
export function answerCells(stage: Stage, result: RequestsResult): [string, string] {
  const pod = result.answers[0]?.pod
  return pod === undefined ? [failureText(result), '-'] : [`${pod} on ${stage.nodeOf(pod)}`, saw(result) ?? '-']
}

/** "2 timeouts, 1 EHOSTUNREACH"; "no failure" */
export function failureText(result: RequestsResult): string {
  const counts = { refused: result.refused, reset: result.reset, timeouts: result.timeouts, ...result.errors }
  const shown = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  return shown.length === 0 ? 'no failure' : shown.join(', ')
}
