// SPDX-License-Identifier: Apache-2.0
/** Results of steady flows as rows of a table. Layer: demo. */
import type { FlowResult, StreamResult } from '../../lab/tools/results.ts'
import type { Row } from '../report.ts'

export const FLOW_HEAD = ['RUN', 'FROM', 'STREAM', 'SENT', 'ANSWERED', 'LOST', 'RECONNECTS', 'LONGEST GAP', 'BY']

export function isWhole(stream: StreamResult): boolean {
  return stream.received > 0 && stream.lost === 0 && stream.reconnects === 0 && Object.keys(stream.errors).length === 0
}

export function flowRows(
  result: FlowResult,
  labels: { readonly run: string; readonly from: string },
  isOk: (stream: StreamResult) => boolean = isWhole,
): Row[] {
  return result.streams.map((stream) => {
    const errors = Object.entries(stream.errors)
      .map(([code, count]) => `, ${count} ${code}`)
      .join('')
    const counts = [stream.sent, stream.received, stream.lost, stream.reconnects].map(String)
    const by = Object.entries(stream.pods)
      .map(([pod, count]) => `${pod} ${count}`)
      .join(', ')
    return { cells: [labels.run, labels.from, stream.stream, ...counts, `${stream.longestGapMs} ms`, by + errors], ok: isOk(stream) }
  })
}
