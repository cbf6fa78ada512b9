// SPDX-License-Identifier: Apache-2.0
/** Figures at scale as tables for people. Layer: bench (pure). */
import { rounded, sizeText } from '../base/results.ts'
import { median, minimum, quantile } from '../base/statistics.ts'
import type { Table } from '../base/tables.ts'
import type { Contender, ScaleFigure, ScaleFigures } from './result.ts'
import { nodeCost } from './results.ts'

/** As many nodes as a cluster of Kubernetes may have. */
const NODES = 5000

export function scaleTables(figures: ScaleFigures): Table[] {
  return [contenderTable(figures), fanOutTable(figures), nodesTable(figures)]
}

const LARGE = 10_000

interface Row {
  readonly what: string
  readonly of: (figure: ScaleFigure) => number
  /** by how many times kube-proxy is to be behind the agent that has services alone, as it has itself */
  readonly aheadAlone: number
  /** and behind the one with all of the cluster: at any size, and at the largest */
  readonly ahead: readonly [always: number, large: number]
}

/** At a start of two seconds a busy moment counts as much: goals are nearly, not more. */
const NEARLY = 0.8
const ROWS: readonly Row[] = [
  {
    what: 'in sync after its start, s',
    of: ({ syncs }) => minimum(syncs.map(({ seconds }) => seconds)),
    aheadAlone: 1,
    ahead: [NEARLY, 20],
  },
  {
    what: 'CPU until then, s',
    of: ({ syncs }) => minimum(syncs.map(({ cpuMs }) => cpuMs)) / 1000,
    aheadAlone: NEARLY,
    ahead: [0, 20],
  },
  { what: 'resident memory, MB', of: ({ memoryMb }) => memoryMb.now, aheadAlone: 1, ahead: [0, 1] },
  { what: 'resident memory at the most, MB', of: ({ memoryMb }) => memoryMb.peak, aheadAlone: 1, ahead: [0, 1] },
  {
    what: 'a changed EndpointSlice, from its write to the lookup, ms, p50',
    of: ({ changeMs }) => median(changeMs),
    aheadAlone: 1,
    ahead: [1, 20],
  },
  { what: 'the same, p99', of: ({ changeMs }) => quantile(changeMs, 0.99), aheadAlone: 1, ahead: [1, 1] },
  { what: 'of it until the server has told a watcher, ms, p50', of: ({ toldMs }) => median(toldMs), aheadAlone: 0, ahead: [0, 0] },
  { what: 'CPU of such a change, ms', of: ({ changeCpuMs }) => changeCpuMs, aheadAlone: 1, ahead: [1, 1] },
]

interface Comparison {
  readonly name: string
  readonly figure: ScaleFigure | undefined
  /** how many times this kube-proxy's is to be; 0: any */
  readonly goal: (row: Row) => number
}

/** Ours that kube-proxy is compared with. */
function comparisons({ contenders, servicesAlone, services }: ScaleFigures): readonly Comparison[] {
  return [
    { name: 'with services alone', figure: servicesAlone, goal: ({ aheadAlone }) => aheadAlone },
    { name: 'with all', figure: figureOf(contenders, 'netplane'), goal: ({ ahead }) => ahead[services < LARGE ? 0 : 1] },
  ]
}

function figureOf(contenders: readonly ScaleFigure[], name: Contender): ScaleFigure | undefined {
  return contenders.find(({ contender }) => contender === name)
}

/** What kube-proxy is not behind in as it is to be. */
export function notAhead(figures: ScaleFigures): readonly string[] {
  const theirs = figureOf(figures.contenders, 'kube-proxy')
  return comparisons(figures).flatMap(({ name, figure, goal }) =>
    ROWS.flatMap((row) => {
      const times = theirs === undefined || figure === undefined ? 0 : row.of(theirs) / row.of(figure)
      return times < goal(row) ? [`${row.what}, ${name}: kube-proxy's is ${times.toFixed(2)} times that, not ${goal(row)}`] : []
    }),
  )
}

function contenderTable(figures: ScaleFigures): Table {
  const { services, objects, loadSeconds, contenders } = figures
  const theirs = figureOf(contenders, 'kube-proxy')
  const ours = comparisons(figures)
  return {
    title: `${sizeText(services)} services of 10 endpoints in a real API server, ${objects} objects in all, loaded in ${loadSeconds.toFixed(0)} s`,
    head: ['what', 'kube-proxy (nftables)', ...ours.flatMap(({ name }) => [`netplane ${name}`, 'times', 'goal'])],
    rows: ROWS.map((row) => [
      row.what,
      text(theirs && row.of(theirs)),
      ...ours.flatMap(({ figure, goal }) => [
        text(figure && row.of(figure)),
        theirs === undefined || figure === undefined ? '' : (row.of(theirs) / row.of(figure)).toFixed(1),
        goal(row) === 0 ? '' : `≥ ${goal(row)}`,
      ]),
    ]),
  }
}

function fanOutTable({ fanOut }: ScaleFigures): Table {
  return {
    title: 'What watching nodes cost the API server, all together',
    head: [
      'nodes',
      'CPU to begin, ms',
      'resident MB',
      'idle CPU ms/s',
      'idle bytes/s',
      'CPU of a change, ms',
      'bytes of a change',
      'CPU of a NodeNetwork, ms',
      'bytes of it',
      "CPU of a kubelet's report, ms",
      'bytes of it',
    ],
    rows: fanOut.map((figure) => [
      String(figure.watchers),
      text(figure.beginCpuMs),
      text(figure.memoryMb),
      text(figure.idleCpuMsPerSecond),
      text(figure.idleBytesPerSecond),
      text(figure.changeCpuMs),
      text(figure.changeBytes),
      text(figure.networkCpuMs),
      text(figure.networkBytes),
      text(figure.reportCpuMs),
      text(figure.reportBytes),
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
      row('a changed NodeNetwork', cost.networkCpuMs, cost.networkBytes),
      row("a kubelet's report", cost.reportCpuMs, cost.reportBytes),
      ...lists.map(({ packed, cpuMs, bytes }) => row(packed ? 'all lists, packed' : 'all lists', cpuMs, bytes)),
      [`resident memory, MB`, rounded(cost.memoryMb, 2).toString(), '', '', rounded(cost.memoryMb * NODES, 0).toString()],
    ],
  }
}

function text(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(value < 100 ? 2 : 0)
}
