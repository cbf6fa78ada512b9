// SPDX-License-Identifier: Apache-2.0
/** Figures at scale as tables for people. Layer: bench (pure). */
import { rounded, sizeText } from '../base/results.ts'
import { median, quantile } from '../base/statistics.ts'
import type { Table } from '../base/tables.ts'
import type { Contender, ScaleFigure, ScaleFigures } from './figure.ts'
import { nodeCost } from './results.ts'

/** As many nodes as a cluster of Kubernetes may have. */
const NODES = 5000

export function scaleTables(figures: ScaleFigures): Table[] {
  return [contenderTable(figures), fanOutTable(figures), nodesTable(figures)]
}

const ROWS: readonly (readonly [what: string, of: (figure: ScaleFigure) => number])[] = [
  ['in sync after its start, s', ({ syncSeconds }) => syncSeconds],
  ['CPU until then, s', ({ syncCpuMs }) => syncCpuMs / 1000],
  ['resident memory, MB', ({ memoryMb }) => memoryMb.now],
  ['resident memory at the most, MB', ({ memoryMb }) => memoryMb.peak],
  ['a changed EndpointSlice, from its write to the lookup, ms, p50', ({ changeMs }) => median(changeMs)],
  ['the same, p99', ({ changeMs }) => quantile(changeMs, 0.99)],
  ['of it until the server has told a watcher, ms, p50', ({ toldMs }) => median(toldMs)],
  ['CPU of such a change, ms', ({ changeCpuMs }) => changeCpuMs],
]

function contenderTable({ services, objects, loadSeconds, contenders }: ScaleFigures): Table {
  const value = (name: Contender, of: (figure: ScaleFigure) => number): number | undefined => {
    const figure = contenders.find(({ contender }) => contender === name)
    return figure === undefined ? undefined : of(figure)
  }
  return {
    title: `${sizeText(services)} services of 10 endpoints in a real API server, ${objects} objects in all, loaded in ${loadSeconds.toFixed(0)} s`,
    head: ['what', 'netplane', 'kube-proxy (nftables)', 'times'],
    rows: ROWS.map(([what, of]) => {
      const [ours, theirs] = [value('netplane', of), value('kube-proxy', of)]
      const times = ours === undefined || theirs === undefined ? '' : (theirs / ours).toFixed(1)
      return [what, text(ours), text(theirs), times]
    }),
  }
}

function fanOutTable({ fanOut }: ScaleFigures): Table {
  return {
    title: 'What watching nodes cost the API server, all together',
    head: ['nodes', 'CPU to begin, ms', 'resident MB', 'idle CPU ms/s', 'idle bytes/s', 'CPU of a change, ms', 'bytes of a change'],
    rows: fanOut.map((figure) => [
      String(figure.watchers),
      text(figure.beginCpuMs),
      text(figure.memoryMb),
      text(figure.idleCpuMsPerSecond),
      text(figure.idleBytesPerSecond),
      text(figure.changeCpuMs),
      text(figure.changeBytes),
    ]),
  }
}

function nodesTable({ fanOut, lists }: ScaleFigures): Table {
  const cost = nodeCost(fanOut)
  const row = (what: string, cpuMs: number, bytes: number): string[] => [
    what,
    cpuMs.toFixed(3),
    (bytes / 1000).toFixed(1),
    ((cpuMs * NODES) / 1000).toFixed(2),
    ((bytes * NODES) / 1e6).toFixed(0),
  ]
  return {
    title: `One node, and ${NODES} of them by the line through these`,
    head: ['what', 'CPU ms', 'KB', `${NODES}: CPU s`, `${NODES}: MB`],
    rows: [
      row('watches begin', cost.beginCpuMs, 0),
      row('a changed slice', cost.changeCpuMs, cost.changeBytes),
      ...lists.map(({ packed, cpuMs, bytes }) => row(packed ? 'all lists, packed' : 'all lists', cpuMs, bytes)),
      [`resident memory, MB`, rounded(cost.memoryMb, 2).toString(), '', '', rounded(cost.memoryMb * NODES, 0).toString()],
    ],
  }
}

function text(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(value < 100 ? 2 : 0)
}
